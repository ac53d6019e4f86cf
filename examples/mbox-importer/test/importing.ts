/**
 * Real coordinators and real importers for tests: processes, as a user would start them, each on a port of its own and in a
 * folder of its own, and ended with the test. They run what `npx tsc --build` made.
 */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { DatabaseSync } from "@photostructure/sqlite";
import { onTestFinished } from "vitest";
import { removeWithMarkers } from "../../../test/markers-of-stores.js";
import type { Summary } from "../src/importing/summary.js";

const CALLNUMBER = fileURLToPath(new URL("../../../packages/cli/bin/callnumber.js", import.meta.url));
const MBOX_IMPORTER = fileURLToPath(new URL("../bin/mbox-importer.js", import.meta.url));
export const DEMO = fileURLToPath(new URL("../bin/demo.js", import.meta.url));
export const LETTERS = fileURLToPath(new URL("../sample/letters.mbox", import.meta.url));

export async function temporaryFolder(): Promise<string> {
  // Without links: sources have the name that the file really has.
  const folder = await realpath(await mkdtemp(join(tmpdir(), "mbox-importer-test-")));
  onTestFinished(() => removeWithMarkers(folder));
  return folder;
}

/** Runs the demo to its end, with its files in `temporary`. Resolves to its standard output; rejects when it fails. */
export async function demo(temporary: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, TMPDIR: temporary };
  return (await promisify(execFile)(process.execPath, [DEMO, ...args], { env })).stdout;
}

export interface RunningCoordinator {
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** A coordinator on an embedded store, made where there is none; or on any other store that is there already. */
export async function startCoordinator(
  storeUrl: string,
  port = 0,
  more: readonly string[] = [],
): Promise<RunningCoordinator> {
  const create = storeUrl.startsWith("sqlite:") ? ["--create"] : [];
  const args = ["serve", "--store", storeUrl, ...create, "--port", String(port), "--log-level", "silent", ...more];
  const child = spawn(process.execPath, [CALLNUMBER, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(() => ended(child, "SIGKILL"));
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line);
    const url = /listening on (http:\/\/[\d.]+:(\d+))/.exec(line);
    if (url === null) continue;
    child.stderr.resume();
    return { url: url[1] as string, port: Number(url[2]), stop: () => ended(child, "SIGTERM") };
  }
  throw new Error(`the coordinator did not listen: ${said.join("\n")}`);
}

/** Runs `callnumber` and expects it to end well. */
export async function callnumber(...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [CALLNUMBER, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const [out, err] = [textOf(child.stdout), textOf(child.stderr)];
  const [status] = await once(child, "exit");
  if (status !== 0) throw new Error(`callnumber ${args.join(" ")} ended with ${status}: ${await err}`);
  return await out;
}

export interface EndedImporter {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What `--json` said; undefined when it was killed, or refused before it began. */
  readonly summary: Summary | undefined;
  readonly stderr: string;
}

export interface RunningImporter {
  readonly pid: number;
  /** Of the processes that import, so far. */
  readonly childPids: readonly number[];
  readonly ended: Promise<EndedImporter>;
  /** Resolves when a line on stderr matches. */
  says(pattern: RegExp): Promise<void>;
}

export function startImporter(...args: readonly string[]): RunningImporter {
  const child = spawn(process.execPath, [MBOX_IMPORTER, ...args, "--json"], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => ended(child, "SIGKILL"));
  const lines: string[] = [];
  const childPids: number[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stderr }).on("line", (line) => {
    lines.push(line);
    const pid = /^process \d+ started, pid (\d+)$/.exec(line)?.[1];
    if (pid !== undefined) childPids.push(Number(pid));
    for (const look of waiting) look();
  });
  const stdout = textOf(child.stdout);
  const finished = once(child, "close").then(async ([status, signal]): Promise<EndedImporter> => {
    const json = await stdout;
    const summary = json === "" ? undefined : (JSON.parse(json) as Summary);
    return { status, signal, summary, stderr: lines.join("\n") };
  });
  const says = (pattern: RegExp) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (lines.some((line) => pattern.test(line)) && waiting.delete(look)) resolve();
      };
      waiting.add(look);
      look();
    });
  return { pid: child.pid as number, childPids, ended: finished, says };
}

export function runImporter(...args: readonly string[]): Promise<EndedImporter> {
  return startImporter(...args).ended;
}

export interface ArchiveRow {
  readonly call_number: string;
  readonly source: string;
  readonly byte_offset: number;
  readonly number: number;
  readonly raw: Uint8Array;
  readonly from_line: Uint8Array | null;
  readonly subject: string | null;
  readonly problem: string | null;
}

/** The archive as any other program sees it. */
export function rowsOf(archive: string): ArchiveRow[] {
  using database = new DatabaseSync(archive, { timeout: 60_000 });
  return database.prepare("select * from messages order by source, byte_offset").all() as unknown as ArchiveRow[];
}

/** Resolves when the archive holds at least `count` messages. */
export async function untilStored(archive: string, count: number): Promise<void> {
  using database = new DatabaseSync(archive, { timeout: 60_000 });
  const query = "select (select count(*) from sqlite_schema where name = 'messages') as made";
  while (database.prepare(query).get()?.["made"] === 0) await pause();
  while (Number(database.prepare("select count(*) as n from messages").get()?.["n"]) < count) await pause();
}

export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 10));
}

/** An mbox of `count` tiny messages, each with its place as its subject. */
export function tinyMbox(count: number): Buffer {
  const messages = Array.from(
    { length: count },
    (_, index) => `From a Mon Jan  5 10:00:00 2015\nSubject: ${index + 1}\n\n\n`,
  );
  return Buffer.from(messages.join(""));
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
