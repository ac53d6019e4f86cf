import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import {
  pause,
  rowsOf,
  runImporter,
  startCoordinator,
  startImporter,
  temporaryDirectory,
  tinyMbox,
  untilStored,
} from "./importing.js";

const MESSAGE_COUNT = 20_000;
/** Enough to be in the middle: one in a hundred. */
const STORED_BEFORE = 200;

let archive: string;
let args: string[];
let coordinator: Awaited<ReturnType<typeof startCoordinator>>;
let storeUrl: string;

async function begin(): Promise<void> {
  const directory = await temporaryDirectory();
  storeUrl = `sqlite:${join(directory, "store.db")}`;
  coordinator = await startCoordinator(storeUrl);
  const mbox = join(directory, "tiny.mbox");
  await writeFile(mbox, tinyMbox(MESSAGE_COUNT));
  archive = join(directory, "archive.db");
  args = [mbox, "--archive", archive, "--coordinator", coordinator.url, "--processes", "3"];
}

/** The same command again completes the import; no row changes, and no message is stored twice. */
async function expectToContinue(): Promise<void> {
  const before = rowsOf(archive);
  expect(before.length).toBeGreaterThanOrEqual(STORED_BEFORE);
  expect(before.length).toBeLessThan(MESSAGE_COUNT);
  const { status, summary } = await runImporter(...args);
  expect(status).toBe(0);
  expect(summary?.messages).toEqual({
    stored: MESSAGE_COUNT - before.length,
    alreadyThere: before.length,
    sameContent: 0,
    notStored: 0,
  });
  const after = rowsOf(archive);
  expect(after.map(({ number }) => number)).toEqual(Array.from({ length: MESSAGE_COUNT }, (_, index) => index + 1));
  expect(new Set(after.map(({ call_number }) => call_number)).size).toBe(MESSAGE_COUNT);
  const rows = new Map(after.map((row) => [row.byte_offset, row]));
  for (const row of before) expect(rows.get(row.byte_offset)).toEqual(row);
  // A process never continues a run of another one.
  const earlier = new Set(before.map(({ call_number }) => decodeCallNumber(call_number).run));
  const numbersBefore = new Set(before.map(({ call_number }) => call_number));
  const fresh = after.filter(({ call_number }) => !numbersBefore.has(call_number));
  expect(fresh.filter(({ call_number }) => earlier.has(decodeCallNumber(call_number).run))).toEqual([]);
}

test("an import ends in order and reports it when one process dies, and continues when it is run again", async () => {
  await begin();
  const importer = startImporter(...args);
  await untilStored(archive, STORED_BEFORE);
  await importer.prints(/^process 3 started/);
  process.kill(importer.workerPids[1] as number, "SIGKILL");
  const leftAtDeath = MESSAGE_COUNT - rowsOf(archive).length;
  const { status, summary, stderr } = await importer.ended;
  expect(status).toBe(1);
  expect(summary?.outcome).toBe("failed");
  expect(summary?.error?.code).toBe("worker_died");
  expect(stderr).toContain("SIGKILL");
  expect(importer.workerPids.filter(isAlive)).toEqual([]);
  // The others did not simply go on to the end.
  expect(MESSAGE_COUNT - rowsOf(archive).length).toBeGreaterThan(leftAtDeath / 2);
  await expectToContinue();
});

test.each([
  ["its parent", false],
  ["all its processes at once", true],
])("an import leaves no process behind when %s dies, and continues when it is run again", async (_, isAll) => {
  await begin();
  const importer = startImporter(...args);
  await untilStored(archive, STORED_BEFORE);
  for (const pid of [...(isAll ? importer.workerPids : []), importer.pid]) signalTo(pid, "SIGKILL");
  await importer.ended;
  while (importer.workerPids.some(isAlive)) await pause();
  await expectToContinue();
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)(
  "an import ends in order after %s, reports to the ledger how far it got, and continues when it is run again",
  async (signal, expected) => {
    await begin();
    const importer = startImporter(...args);
    await untilStored(archive, STORED_BEFORE);
    // As a terminal does it: to every process.
    for (const pid of [importer.pid, ...importer.workerPids]) signalTo(pid, signal);
    const { status, summary } = await importer.ended;
    expect(status).toBe(expected);
    expect(summary?.outcome).toBe("stopped");
    expect(summary?.error).toBeNull();
    expect(summary?.messages.stored).toBe(rowsOf(archive).length);
    expect(await statesOfLeases(coordinator.url)).not.toContain("unreported");
    await expectToContinue();
  },
);

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("an import is stopped, and does not fail, after %s while its processes start", async (signal, expected) => {
  await begin();
  const importer = startImporter(...args);
  await importer.prints(/^process 1 started/);
  for (const pid of [importer.pid, ...importer.workerPids]) signalTo(pid, signal);
  expect(await importer.ended).toMatchObject({ status: expected, summary: { outcome: "stopped", error: null } });
});

test("an import fails with what to do when its coordinator is gone, can be stopped while it waits, and continues", async () => {
  await begin();
  await coordinator.stop();
  const failed = await runImporter(...args, "--wait", "1");
  expect(failed.status).toBe(1);
  expect(failed.summary?.error?.code).toBe("coordinator_unreachable");
  expect(failed.stderr).toMatch(/callnumber serve.*the same command again/);
  expect(rowsOf(archive)).toEqual([]);

  const stopped = startImporter(...args, "--wait", "3600");
  await stopped.prints(/waits for the coordinator: coordinator_unreachable/);
  signalTo(stopped.pid, "SIGTERM");
  expect(await stopped.ended).toMatchObject({ status: 143, summary: { outcome: "stopped", error: null } });

  const waiting = startImporter(...args, "--wait", "3600");
  await waiting.prints(/waits for the coordinator: coordinator_unreachable/);
  await startCoordinator(storeUrl, "--port", new URL(coordinator.url).port);
  const { status, summary } = await waiting.ended;
  expect(status).toBe(0);
  expect(summary?.messages.stored).toBe(MESSAGE_COUNT);
});

test("an import reports that it waits when its numbers have run out, not before, and that it reads nothing meanwhile", async () => {
  await begin();
  // More than a run and a spare run have numbers for.
  await writeFile(args[0] as string, tinyMbox(34_000));
  const importer = startImporter(...args, "--processes", "1", "--wait", "3600");
  await untilStored(archive, STORED_BEFORE);
  await coordinator.stop();
  await importer.prints(/waits for the coordinator: coordinator_unreachable/);
  expect(rowsOf(archive).length).toBeGreaterThan(16_384 - 64);
  await importer.prints(/ messages read, 0 a second$/);
  signalTo(importer.pid, "SIGTERM");
  expect((await importer.ended).status).toBe(143);
});

async function statesOfLeases(url: string): Promise<string[]> {
  const answer = (await (await fetch(`${url}/v1/namespaces/main/runs`)).json()) as {
    leases: { progress: { state: string } | null }[];
  };
  expect(answer.leases.length).toBeGreaterThan(0);
  return answer.leases.map(({ progress }) => progress?.state ?? "unreported");
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  if (isAlive(pid)) process.kill(pid, signal);
}

/** A dead process that its parent has not reaped still has a pid: Linux shows it as Z. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !existsSync("/proc") || !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
