/**
 * A full disk while importers lease: that of a SQLite store, of Redis, of checkpoints and of trimmed leases. Each heals as documented once
 * there is space again. No run is leased twice, and no lease is lost.
 * Guarantees: G8, G11 (docs/guarantees.md).
 */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { leasesInFiles } from "../packages/coordinator/test/trims.js";
import { exportedLedger, LeasingImporters } from "./leasing-importers.js";
import { makeOldLedger } from "./old-ledger.js";
import { COMMAND, callnumber, folderForTest, type ServingProcess, serveProcessWith } from "./processes/command.js";
import { outputOf } from "./processes/server-process.js";
import { asOperator } from "./redis/shipped-users.js";
import { ownServerUnavailable, sharedRedis, startRedisServer } from "./redis/test-redis.js";
import { type SmallDisk, smallDisk, smallDiskUnavailable } from "./small-disk.js";

interface World {
  /** Of what is not on the small disk. */
  readonly folder: string;
  readonly disk: SmallDisk;
}

async function newWorld(sizeKib: number): Promise<World> {
  const folder = await folderForTest();
  const mountPoint = join(folder, "disk");
  mkdirSync(mountPoint);
  return { folder, disk: await smallDisk(mountPoint, sizeKib) };
}

function serveIn(
  { disk: { runIn }, folder }: World,
  store: string,
  ...more: readonly string[]
): Promise<ServingProcess> {
  return serveProcessWith({ runIn }, store, "--checkpoint-dir", join(folder, "checkpoints"), ...more);
}

const logOf = ({ output }: ServingProcess) => output().stdout;

beforeEach(({ skip }) => {
  const reason = smallDiskUnavailable();
  if (reason !== undefined) skip(reason);
});

test("a SQLite store on a full disk stops leasing, and leases once there is space and the coordinator is restarted", async () => {
  const world = await newWorld(1_024);
  const { disk } = world;
  const store = `sqlite:${join(disk.folder, "store.db")}`;
  const first = await serveIn(world, store, "--create");
  const importers = new LeasingImporters(first.url);
  await importers.untilLeased();
  disk.fill();
  const what =
    "database or disk is full); this coordinator leases no more. Free space on its disk, then start it again";
  expect(await importers.untilRejected("store_unavailable")).toContain(what);
  disk.free();
  // What the failed write left on the disk is not known before the file is read again.
  expect(await importers.untilRejected("store_unavailable")).toContain(what);
  expect(await first.stop()).toBe(0);
  disk.fill();
  await expect(serveIn(world, store)).rejects.toThrow("is full. Free space on its disk, then start this again");
  disk.free();
  const second = await serveIn(world, store);
  importers.goTo(second.url);
  await importers.untilLeased();
  await importers.stop();
  expect(logOf(second)).toContain('"msg":"recovered"');
  importers.expectAllIn(await exportedLedger(second.url));
});

test("a backup on a full disk fails, names its file and leaves nothing there", async () => {
  const { folder, disk } = await newWorld(256);
  const store = `sqlite:${join(folder, "store.db")}`;
  await callnumber(["init", "--store", store, "--checkpoint-dir", join(folder, "checkpoints")]);
  disk.fill();
  const target = join(disk.folder, "backup.db");
  const words = [COMMAND, "backup", "--store", store, "--to", target];
  const made = outputOf({ program: process.execPath, words, runIn: disk.runIn });
  await expect(made).rejects.toThrow(`callnumber: the backup ${target} can't be made: its disk is full`);
  expect(readdirSync(disk.seenFolder)).toEqual(["filler"]);
});

test("a coordinator leases nothing while its checkpoint directory is full, and leases once there is space", async () => {
  const { disk } = await newWorld(1_024);
  const { storeUrl, operatorUrl } = sharedRedis();
  await makeOldLedger(operatorUrl, 1);
  const folder = join(disk.folder, "checkpoints");
  const serve = () => serveProcessWith({ runIn: disk.runIn }, storeUrl, "--checkpoint-dir", folder);
  const first = await serve();
  const importers = new LeasingImporters(first.url);
  await importers.untilLeased();
  disk.fill();
  const what =
    /the checkpoint directory .* can't be used: ENOSPC.* Free space there; a coordinator that runs then leases again$/;
  expect(await importers.untilRejected("checkpoint_unavailable")).toMatch(what);
  await expect(serve()).rejects.toThrow("Free space there");
  const files = readdirSync(join(disk.seenFolder, "checkpoints"));
  expect(files).toEqual([expect.stringMatching(/\.checkpoint$/)]);
  disk.free();
  await importers.untilLeased();
  await importers.stop();
  importers.expectAllIn(await exportedLedger(first.url));
});

test("a coordinator leases while its ledger directory is full, and trims within a minute once there is space", async () => {
  const world = await newWorld(1_024);
  const { disk } = world;
  const { storeUrl, operatorUrl } = sharedRedis();
  const old = await makeOldLedger(operatorUrl, 1_700);
  // It recovers the store, so that the next one finds it open and trims at its start.
  const recovering = await serveIn(world, storeUrl);
  const importers = new LeasingImporters(recovering.url);
  await importers.untilLeased();
  await recovering.stop();
  const ledgerDir = join(disk.seenFolder, "ledger");
  mkdirSync(ledgerDir);
  // For some of the four steps, and a part of the next.
  disk.fill(300_000);
  const trimming = await serveIn(world, storeUrl, "--ledger-dir", join(disk.folder, "ledger"));
  importers.goTo(trimming.url);
  await expect
    .poll(() => logOf(trimming))
    .toContain('"reason":"ENOSPC: no space left on device, write","msg":"ledger_trim_failed"');
  await importers.untilLeased();
  expect(leasesInFiles(ledgerDir).length).toBeGreaterThan(0);
  const whileFull = [...(await exportedLedger(trimming.url)), ...leasesInFiles(ledgerDir)];
  expect(whileFull).toEqual(expect.arrayContaining([...old]));
  disk.free();
  await expect.poll(async () => (await exportedLedger(trimming.url))[0]?.firstRun).toBeGreaterThan(old.length);
  await importers.untilLeased();
  await importers.stop();
  const inFiles = leasesInFiles(ledgerDir);
  expect(inFiles).toHaveLength(old.length);
  expect(inFiles).toEqual(expect.arrayContaining([...old]));
  importers.expectAllIn([...(await exportedLedger(trimming.url)), ...inFiles]);
});

const REDIS: readonly (readonly [appendfsync: string, message: string, isRestarted: boolean])[] = [
  ["always", "can't be reached", true],
  ["everysec", "it can't write to its disk. Free space there", false],
];

test.for(REDIS)(
  "a Redis with appendfsync %s on a full disk leases nothing, and leases once there is space",
  async ([appendfsync, message, isRestarted], { skip }) => {
    const reason = ownServerUnavailable();
    if (reason !== undefined) skip(reason);
    const world = await newWorld(2_048);
    const { disk } = world;
    const config = { dir: disk.folder, appendonly: "yes", appendfsync, "aof-load-truncated": "no" };
    const server = await startRedisServer({ runIn: disk.runIn, config });
    await makeOldLedger(asOperator(server.storeUrl), 1);
    const { url } = await serveIn(world, server.storeUrl);
    const importers = new LeasingImporters(url);
    await importers.untilLeased();
    disk.fill();
    expect(await importers.untilRejected("store_unavailable")).toContain(message);
    disk.free();
    if (isRestarted) await server.start();
    await importers.untilLeased();
    await importers.stop();
    importers.expectAllIn(await exportedLedger(url));
  },
);
