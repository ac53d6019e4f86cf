/**
 * Real coordinators and real importers for tests: processes, as a user would start them, each on a port and in a directory of
 * its own, ended with the test. They run what `npx tsc --build` made. And messages and archives to import.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, realpathSync } from "node:fs";
import { mkdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { DatabaseSync } from "@photostructure/sqlite";
import { onTestFinished, type TestContext } from "vitest";
import {
  callnumber as callnumberHere,
  folderForTest,
  type ServingProcess,
  serveProcess,
} from "../../../test/processes/command.js";
import type { Archive } from "../src/archive/archive.js";
import type { NewMessage } from "../src/archive/insert-message.js";
import { type NumberedMessage, RangeImporter, type RangeResult } from "../src/importing/range-importer.js";
import type { Summary } from "../src/importing/summary.js";
import { parseMessage } from "../src/message/parse-message.js";
import { digestsOf, type SameRule } from "../src/message/sameness.js";
import { openMailSources, type Problem, planRanges, type ScannedSource } from "../src/sources/source.js";

export const CALLNUMBER_ARCHIVE = fileURLToPath(new URL("../bin/callnumber-archive.js", import.meta.url));
export const DEMO = fileURLToPath(new URL("../bin/demo.js", import.meta.url));
/** An invented mailing list: what the demo imports. */
export const GARDEN = fileURLToPath(new URL("../sample/garden.mbox", import.meta.url));
/** With what goes wrong in real mail. */
export const LETTERS = fileURLToPath(new URL("letters.mbox", import.meta.url));

export async function temporaryDirectory(): Promise<string> {
  // Without links, as sources are named.
  return await realpath(await folderForTest());
}

export const letter = (subject: string) =>
  `Subject: ${subject}\n\nFrom here on, text. >From is not quoted in a maildir.\n`;

/** Makes a maildir with three messages, and a fourth that is not delivered yet. */
export async function sampleMaildir(): Promise<string> {
  const maildir = join(await temporaryDirectory(), "Maildir");
  for (const name of ["cur", "new", "tmp"]) await mkdir(join(maildir, name), { recursive: true });
  await writeFile(join(maildir, "cur", "1001.a.host:2,S"), letter("one"));
  await writeFile(join(maildir, "cur", "1002.b.host:2,"), letter("two"));
  await writeFile(join(maildir, "new", "1003.c.host"), letter("three"));
  await writeFile(join(maildir, "tmp", "1004.d.host"), letter("not delivered yet"));
  return maildir;
}

/** Runs the demo to its end, with its files in `temporary`. Resolves to its standard output; rejects when it fails. */
export async function demo(temporary: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, TMPDIR: temporary };
  return (await promisify(execFile)(process.execPath, [DEMO, ...args], { env })).stdout;
}

/** A coordinator on an embedded store, created where there is none; or on any other store that exists. */
export function startCoordinator(storeUrl: string, ...options: readonly string[]): Promise<ServingProcess> {
  const create = storeUrl.startsWith("sqlite:") ? ["--create"] : [];
  return serveProcess(storeUrl, ...create, "--log-level", "silent", ...options);
}

/** Runs `callnumber` in this process and expects it to succeed. */
export async function callnumber(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await callnumberHere(args);
  if (code !== 0) throw new Error(`callnumber ${args.join(" ")} exited with ${code}: ${stderr}`);
  return stdout;
}

/** Starts the importer; it ends with the test at the latest. */
export function startImporter(...args: readonly string[]) {
  const child = spawn(process.execPath, [CALLNUMBER_ARCHIVE, "import", ...args, "--json"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  /** Of the workers, so far. */
  const workerPids: number[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    lines.push(line);
    const pid = /^process \d+ started, pid (\d+)$/.exec(line)?.[1];
    if (pid !== undefined) workerPids.push(Number(pid));
  });
  const stdout = text(child.stdout);
  const ended = once(child, "close").then(async ([status]) => {
    const json = await stdout;
    const values = args.includes("--follow") ? json.split("\n").slice(0, -1) : [json].filter((value) => value !== "");
    const printed = values.map((value) => JSON.parse(value) as Summary | NumberedMessage);
    // A killed or rejected importer has no summary.
    const summary = printed.find((value) => "outcome" in value);
    const numbered = printed.filter((value) => "callNumber" in value);
    return { status: status as number | null, summary, numbered, stderr: lines.join("\n") };
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  /** Resolves when a line on stderr matches. */
  const prints = async (pattern: RegExp) => {
    while (!lines.some((line) => pattern.test(line))) await pause();
  };
  return { pid: child.pid as number, workerPids, ended, prints };
}

export function runImporter(...args: readonly string[]) {
  return startImporter(...args).ended;
}

/** Runs any command of the archive to its end. */
export async function callnumberArchive(...args: readonly string[]) {
  const child = spawn(process.execPath, [CALLNUMBER_ARCHIVE, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const [status] = (await once(child, "close")) as [number | null];
  const [stdout, stderr] = await output;
  return { status, stdout, stderr };
}

export interface ArchiveRow {
  readonly call_number: string;
  readonly source: string;
  readonly byte_offset: number;
  readonly number: number;
  readonly raw: Uint8Array;
  readonly from_line: Uint8Array | null;
  readonly message_id: string | null;
  readonly from_header: string | null;
  readonly date: string | null;
  readonly subject: string | null;
  readonly problem: string | null;
  readonly thread: string;
}

/** The archive as any other program sees it. */
export function rowsOf(archive: string): ArchiveRow[] {
  using database = new DatabaseSync(archive, { timeout: 60_000 });
  return database.prepare("select * from messages order by source, byte_offset").all() as unknown as ArchiveRow[];
}

/** The bytes of each place that was imported, of copies too. */
export function placesOf(
  archive: string,
): (Pick<ArchiveRow, "source" | "byte_offset" | "from_line" | "raw"> & { readonly why: SameRule | null })[] {
  using database = new DatabaseSync(archive, { timeout: 60_000 });
  const copies =
    "select copies.source, copies.byte_offset, from_line, raw, why from copies join messages using (call_number)";
  const query = `select source, byte_offset, from_line, raw, null as why from messages union all ${copies} order by source, byte_offset`;
  return database.prepare(query).all() as never;
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

/** A message for the archive, of which a test gives only what it is about. */
export function message(content: string | Buffer, fields: Partial<NewMessage> = {}): NewMessage {
  const raw = Buffer.from(content);
  const { listId, ...header } = parseMessage(raw);
  const place = { source: "/mail/letters.mbox", number: 1, byteOffset: 0, fromLine: null };
  return { ...header, list: listId, isListGiven: false, ...place, raw, ...digestsOf(raw), problem: null, ...fields };
}

const SHARED_MAIL = fileURLToPath(new URL("../../../../shared/mail", import.meta.url));
/** The mail archives next to the repository. They have letters of real people and never become part of it. */
const MAIL = existsSync(SHARED_MAIL) ? realpathSync(SHARED_MAIL) : SHARED_MAIL;

/** Messages of each archive: those of the lists as their makers counted them, the others counted by hand. */
export const MESSAGE_COUNTS: Readonly<Record<string, number>> = {
  [`${MAIL}/twisted-web-2005.mbox`]: 1259,
  [`${MAIL}/notmuch-and-lkml.mbox`]: 263,
  [`${MAIL}/nasty/8bit-headers.mbox`]: 7,
  [`${MAIL}/nasty/bad-dates.mbox`]: 7,
  [`${MAIL}/nasty/blank-lines-first.mbox`]: 2,
  [`${MAIL}/nasty/broken-headers.mbox`]: 5,
  [`${MAIL}/nasty/case-folded-ids.mbox`]: 4,
  [`${MAIL}/nasty/crlf.mbox`]: 20,
  [`${MAIL}/nasty/empty.mbox`]: 0,
  // 7, and two lines that look like a separator.
  [`${MAIL}/nasty/from-in-bodies.mbox`]: 9,
  [`${MAIL}/nasty/hostile-message-ids.mbox`]: 25,
  [`${MAIL}/nasty/mixed-eol.mbox`]: 20,
  [`${MAIL}/nasty/no-final-newline.mbox`]: 2,
  [`${MAIL}/nasty/no-message-id.mbox`]: 300,
  [`${MAIL}/nasty/no-separator.mbox`]: 1,
  // The third one follows a hole of 4,096 NUL bytes.
  [`${MAIL}/nasty/nul-bytes.mbox`]: 3,
  [`${MAIL}/nasty/only-separators.mbox`]: 5,
  [`${MAIL}/nasty/same-message-id.mbox`]: 300,
};

/** Two public lists. */
export const SHARED_LISTS = [`${MAIL}/twisted-web-2005.mbox`, `${MAIL}/notmuch-and-lkml.mbox`];

/** A small mailbox for each fault that was seen in public reports. */
export const ODD_MAIL = `${MAIL}/odd`;

/** Imports sources in this process, without a coordinator, into an archive of its own. */
export async function importHere(archive: Archive, ...paths: readonly string[]) {
  const problems: Problem[] = [];
  const scanned: ScannedSource[] = [];
  const [results, listener] = [
    [] as RangeResult[],
    {
      onSourceScanned: (source: ScannedSource) => void scanned.push(source),
      onProblem: (problem: Problem) => void problems.push(problem),
    },
  ];
  const numbers = { storeId: "store-a", take: async (count: number) => numbersOfHere(count) };
  const importer = new RangeImporter(archive, numbers, { namespace: "main", list: undefined });
  const sources = (await Promise.all(paths.map((path) => openMailSources(path)))).flatMap((place) => place.sources);
  for await (const range of planRanges(sources, listener)) results.push(await importer.import(range));
  for (const result of results) problems.push(...result.problems);
  const stored = results.reduce((sum, result) => sum + result.stored.length, 0);
  return { stored, problems, scanned, notices: scanned.flatMap(({ notices }) => notices) };
}

let takenHere = 0;
/** None of them twice in a test file. */
function numbersOfHere(count: number): string[] {
  const next = () => ({ version: 0, run: 1 + Math.floor(takenHere / 16_384), sequence: takenHere++ % 16_384 });
  return Array.from({ length: count }, () => encodeCallNumber(next()));
}

export function skipWithoutSharedMail(ctx: TestContext): void {
  if (!existsSync(MAIL)) ctx.skip(`the mail archives are not here: ${MAIL}`);
}
