/** A lost store of which there are checkpoints: every command reports the same, changes nothing, and prints the command that helps. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { checkpointsOf, parseStoreUrl } from "@callnumber/coordinator/operator";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { removeWithMarkers } from "../../../test/markers-of-stores.js";
import { callnumber, type Finished, folderForTest, serve, shell } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { done, expectFailure } from "./commands-for-test.js";

let folder: string;
let checkpointDir: string;

beforeEach(async () => {
  folder = await folderForTest();
  checkpointDir = join(folder, "checkpoint");
});

/** Makes a store, leases from it, and stops. */
async function used(store: string): Promise<void> {
  await done("init", "--store", store, "--checkpoint-dir", checkpointDir);
  const { url, stop } = await serve(store, "--checkpoint-dir", checkpointDir);
  await done("next", "--coordinator", url);
  await stop();
}

/** Runs a command on a store. One after the other: only one process may open an embedded store. */
function onStore(store: string, ...words: readonly string[]): Promise<Finished> {
  return callnumber([...words, "--store", store, "--checkpoint-dir", checkpointDir]);
}

const SERVE = ["serve", "--port", "0"];

describe("an embedded store that is gone", () => {
  let data: string;
  let store: string;

  beforeEach(async () => {
    data = join(folder, "da ta");
    store = `sqlite:${data}/store.db`;
    await used(store);
    await removeWithMarkers(data);
  });

  test.each([
    ["missing", async () => {}],
    [
      "an empty file",
      async () => {
        await mkdir(data);
        await writeFile(`${data}/store.db`, "", { mode: 0o600 });
      },
    ],
  ])("every command reports a lost store with the same message when it is %s, and makes nothing", async (_, leave) => {
    await leave();
    const before = await readdir(folder, { recursive: true });
    const commands = [
      SERVE,
      [...SERVE, "--create"],
      ["doctor"],
      ["init"],
      ["init", "--namespace", "lists"],
      ["advance-version"],
      ["move", "--to", `sqlite:${folder}/new.db`],
    ];
    const errors = new Set<string | undefined>();
    for (const words of commands) errors.add(/^callnumber: (.*)$/m.exec((await onStore(store, ...words)).stderr)?.[1]);
    expect(errors.size).toBe(1);
    expect([...errors][0]).toMatch(
      /runs up to 1 of namespace "main" were leased or skipped.*callnumber recover --store 'sqlite:\S+ ta\/store.db' .*` \(store_not_found\)$/,
    );
    const after = await readdir(folder, { recursive: true });
    expect(after.filter((name) => !name.endsWith(".lock"))).toEqual(before);
  });

  test("the printed command makes a store that leases above all that was leased", async () => {
    const { stderr } = await onStore(store, ...SERVE);
    const printed = /`(callnumber recover [^`]+)` \(store_not_found\)/.exec(stderr)?.[1];
    const planned = await shell(`${printed}`);
    expect(planned).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing was changed.") });
    expect(await readdir(folder)).toEqual(["checkpoint"]);
    expect((await shell(`${printed} --apply`)).code).toBe(0);
    const { url } = await serve(store, "--checkpoint-dir", checkpointDir);
    const made = await done("next", "--coordinator", url);
    const [, run] = (await done("decode", made.stdout.trim())).stdout.split(",");
    expect(Number(run)).toBeGreaterThan(65_536);
  });

  test("a recovery says when the next run is free, and how many follow", async () => {
    expect((await onStore(store, "recover")).stdout).toMatch(
      /time +the next run is free about \d+ s later, then 2 a second for all importers together\n/,
    );
  });

  test("a recovery says when fewer nodes may be counted than before, and only then", async () => {
    const checkpoints = checkpointsOf(parseStoreUrl(store), checkpointDir);
    const file = checkpoints.checkpointFileOf("main");
    const known = file.readable() as NonNullable<ReturnType<typeof file.readable>>;
    file.note({ ...known, generation: known.generation + 1, nodeCount: 2 });
    file.close();
    const shown = /data nodes +1.*and costs.*nodes +without the others of 2: only if they are wiped or stopped perm/s;
    expect((await onStore(store, "recover", "--nodes", "1")).stdout).toMatch(shown);
    expect((await onStore(store, "recover", "--nodes", "2")).stdout).not.toContain("without the others");
  });

  test("a recovery that is not possible makes no store", async () => {
    const rejected = await onStore(store, "recover", "--apply", "--min-run", "1000000000");
    expect(rejected).toMatchObject({ code: 1, stderr: expect.stringContaining("manual_recovery_required") });
    expect(await readdir(folder)).toEqual(["checkpoint"]);
  });
});

test.each([
  ["is a file", () => writeFile(checkpointDir, "no directory"), () => checkpointDir, ["checkpoint"]],
  ["can't be made", async () => {}, () => "/proc/none/checkpoint", []],
])("init makes no store when the checkpoint directory %s", async (_, prepare, directory, left) => {
  await prepare();
  const store = ["--store", `sqlite:${folder}/store.db`, "--checkpoint-dir", directory()];
  await expectFailure(["init", "--create", ...store], 1, "checkpoint_unavailable");
  expect(await readdir(folder)).toEqual(left);
});

test("serve rejects a checkpoint directory that is the store's own, and makes no store", async () => {
  const started = await onStore(`sqlite:${checkpointDir}/store.db`, ...SERVE, "--create");
  expect(started).toMatchObject({ code: 2, stderr: expect.stringContaining("the store's own folder") });
  expect(await readdir(folder)).toEqual([]);
});

describe("a Redis that was emptied", () => {
  test("serve, doctor and init report that Redis was emptied, and not that it is new", async () => {
    const { operatorUrl, url } = sharedRedis();
    await used(operatorUrl);
    const redis = new Redis(url);
    await redis.del(...(await redis.keys(`${new URL(operatorUrl).searchParams.get("prefix")}{*`)));
    const half = await onStore(operatorUrl, "doctor");
    expect(half.stdout).toMatch(/REFUSED \(namespace_lost\)[^]*change +`callnumber recover .*--store-id/);
    expect(half.stdout).not.toContain("callnumber init");
    await redis.del(...(await redis.keys(`${new URL(operatorUrl).searchParams.get("prefix")}*`)));
    for (const words of [SERVE, [...SERVE, "--namespace", "main"], ["doctor"], ["init"]]) {
      const { code, stdout, stderr } = await onStore(operatorUrl, ...words);
      expect(code).toBe(1);
      expect(stdout + stderr).toContain('namespace "main" is missing, but runs up to 1 were leased or skipped');
      expect(stdout + stderr).toContain("namespace_lost");
      expect(stdout + stderr).not.toContain("callnumber init");
      // One command, with what it needs, however often it is printed.
      for (const [command] of (stdout + stderr).matchAll(/`callnumber .*?`/g)) {
        expect(command).toMatch(/^`callnumber recover .*--store-id \S+ --min-run 0\/1`$/);
      }
    }
    expect(await redis.keys(`${new URL(operatorUrl).searchParams.get("prefix")}*`)).toEqual([]);
    await done("init", "--store", operatorUrl, "--checkpoint-dir", join(folder, "another"));
    expect((await onStore(operatorUrl, "doctor")).stdout).toMatch(
      /REFUSED \(store_id_mismatch\): namespace main: its store id/,
    );
    redis.disconnect();
  });

  test("serve --create is rejected on Redis: it is for an embedded store", async () => {
    const started = await onStore(sharedRedis().storeUrl, ...SERVE, "--create");
    expect(started).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("For a server: `callnumber init --store "),
    });
  });
});
