/** `--follow` and the real logrotate: each delivered message is stored once, whatever the rotation does, and however often the importer is killed. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { appendFile, readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, inject, type TestContext, test } from "vitest";
import { seededBelow } from "../../../test/faults/seeded-random.js";
import { rowsOf, startCoordinator, startImporter, temporaryDirectory, tinyMbox, untilStored } from "./importing.js";

const LOGROTATE = "/usr/sbin/logrotate";
const KILL_COUNT = 50;
const below = seededBelow(inject("seed"));

async function mailbox(ctx: TestContext, ...options: readonly string[]) {
  if (!existsSync(LOGROTATE)) ctx.skip("logrotate is not installed");
  const directory = await temporaryDirectory();
  const [mbox, archive, rules] = ["lists", "archive.db", "rules"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(rules, `${mbox} {\n  rotate 99\n  missingok\n  ${options.join("\n  ")}\n}\n`);
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  let delivered = 0;
  return {
    directory,
    mbox,
    archive,
    args: [mbox, "--archive", archive, "--coordinator", url, "--processes", "1", "--follow", "--settle", "1"],
    count: () => delivered,
    /** As a mail server that locks the mailbox: a message at once, and none during a rotation. */
    async deliver(count: number): Promise<void> {
      for (let index = 0; index < count; index++) {
        await appendFile(mbox, tinyMbox(delivered + 1).subarray(tinyMbox(delivered).length));
        delivered++;
        await sleep(below(30));
      }
    },
    async rotate(): Promise<void> {
      await promisify(execFile)(LOGROTATE, ["-f", "-s", join(directory, "state"), rules]);
    },
  };
}

function expectEachOnce(archive: string, count: number): void {
  const subjects = rowsOf(archive).map(({ subject }) => Number(subject));
  expect(subjects.toSorted((one, other) => one - other)).toEqual(
    Array.from({ length: count }, (_, index) => index + 1),
  );
  // Each file of a rotated mailbox has the place of the mailbox: no message has two.
  using database = new DatabaseSync(archive);
  expect(database.prepare("select * from copies").all()).toEqual([]);
  expect(new Set(rowsOf(archive).map(({ source }) => source))).toEqual(new Set(["lists"]));
}

test.for([
  [["create"]],
  [["nocreate"]],
  [["copytruncate"]],
  [["create", "compress"]],
  [["create", "compress", "delaycompress"]],
  [["copytruncate", "compress"]],
  [["create", "compress", "dateext", "dateformat -%Y%m%d-%s"]],
])("each message that arrives is stored once while logrotate rotates with %j", async ([options], ctx) => {
  const { mbox, archive, args, deliver, rotate, count, directory } = await mailbox(ctx, ...(options as string[]));
  const importer = startImporter(...args);
  await importer.prints(/^read to the end/);
  expect(existsSync(mbox)).toBe(false);
  for (let round = 0; round < 6; round++) {
    await deliver(1 + below(6));
    await sleep(below(2500));
    await rotate();
    // Names with seconds must differ.
    if (options?.includes("dateext")) await sleep(1100);
  }
  await deliver(2);
  await untilStored(archive, count());
  process.kill(importer.pid, "SIGTERM");
  const { status, summary, stderr } = await importer.ended;
  expect([status, summary?.messages.notStored, summary?.problems]).toEqual([0, 0, []]);
  expect((await readdir(directory)).filter((name) => name.startsWith("lists"))).toHaveLength(7);
  expectEachOnce(archive, count());
  expect(stderr).not.toContain("was deleted");
  if (!options?.includes("copytruncate")) expect(stderr).not.toContain("truncated");
});

test("nothing is said of messages that could not be read where a rotation had just moved them", async () => {
  const directory = await temporaryDirectory();
  const [mbox, archive] = ["lists", "archive.db"].map((name) => join(directory, name)) as [string, string];
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  await writeFile(mbox, tinyMbox(40));
  const args = ["--archive", archive, "--coordinator", url, "--processes", "2", "--follow", "--settle", "1"];
  const importer = startImporter(mbox, ...args);
  await untilStored(archive, 40);
  const workers = importer.workerPids;
  expect(workers).toHaveLength(2);
  for (const pid of workers) process.kill(pid, "SIGSTOP");
  await appendFile(mbox, tinyMbox(60).subarray(tinyMbox(40).length));
  // The importer looks once a second.
  await sleep(1500);
  await rename(mbox, `${mbox}.1`);
  await sleep(1500);
  for (const pid of workers) process.kill(pid, "SIGCONT");
  await untilStored(archive, 60);
  process.kill(importer.pid, "SIGTERM");
  const { status, summary, stderr } = await importer.ended;
  expect([status, summary?.messages.notStored]).toEqual([0, 0]);
  expectEachOnce(archive, 60);
  expect(stderr).not.toContain("can't be read");
});

test(`each message is stored once through ${KILL_COUNT} kills of the importer and rotations that compress`, async (ctx) => {
  const { archive, args, deliver, rotate, count } = await mailbox(ctx, "create", "compress");
  const numbered: string[] = [];
  await deliver(3);
  for (let life = 1; life <= KILL_COUNT; life++) {
    const importer = startImporter(...args);
    const untilKilled = [
      () => sleep(below(400)),
      () => importer.prints(/^process \d started/),
      () => importer.prints(/^read to the end/),
      () => untilStored(archive, Math.floor(count() / 2)),
    ][below(4)] as () => Promise<void>;
    const feeding = (async () => {
      await deliver(1 + below(5));
      if (life % 4 === 0) await rotate();
      await deliver(below(3));
    })();
    await untilKilled();
    for (const pid of life % 2 === 0 ? [importer.pid] : [importer.pid, ...importer.workerPids]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended.
      }
    }
    numbered.push(...(await importer.ended).numbered.map(({ callNumber }) => callNumber));
    await feeding;
    // While no importer runs.
    if (life % 4 === 2) await rotate();
  }
  const last = startImporter(...args);
  await untilStored(archive, count());
  await last.prints(/^read to the end/);
  process.kill(last.pid, "SIGTERM");
  const { status, summary } = await last.ended;
  expect([status, summary?.outcome, summary?.messages.notStored]).toEqual([0, "complete", 0]);
  expectEachOnce(archive, count());
  expect(new Set(numbered).size).toBe(numbered.length);
});
