/** `--follow` as a process: mail that arrives slowly, rotations, kills, and a coordinator that is away. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import {
  appendFile,
  copyFile,
  type FileHandle,
  mkdir,
  open,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, inject, test } from "vitest";
import { seededBelow } from "../../../test/faults/seeded-random.js";
import { type MboxPart, splitMbox } from "../src/sources/mbox.js";
import {
  CALLNUMBER_ARCHIVE,
  MESSAGE_COUNTS,
  rowsOf,
  startCoordinator,
  startImporter,
  temporaryDirectory,
  tinyMbox,
  untilStored,
} from "./importing.js";

const KILL_COUNT = 50;
const below = seededBelow(inject("seed"));

/** Writes messages to an mbox as a mail program would that is slow: in pieces, through one open file. */
class SlowMbox {
  readonly #path: string;
  readonly #bytes: Buffer;
  #file: FileHandle | undefined;
  #written = 0;

  constructor(path: string, messages: readonly Buffer[]) {
    this.#path = path;
    this.#bytes = Buffer.concat(messages);
  }

  /** Writes the next `share` of all bytes, in pieces. */
  async write(share: number): Promise<void> {
    const end = Math.min(this.#written + Math.ceil(this.#bytes.length * share), this.#bytes.length);
    while (this.#written < end) {
      const size = Math.min(1 + below(20_000), end - this.#written);
      await this.#append(size);
      await sleep(below(10));
    }
  }

  /** Renames the file in the middle of a message: the program goes on in it until the message is complete. */
  async rotateByRenaming(name: string): Promise<void> {
    await rename(this.#path, name);
    await this.#finishMessage();
    await this.#file?.close();
    this.#file = undefined;
  }

  async rotateByCopying(name: string): Promise<void> {
    await this.#finishMessage();
    await copyFile(this.#path, name);
    await truncate(this.#path);
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  async #finishMessage(): Promise<void> {
    const next = this.#bytes.indexOf("\nFrom ", this.#written);
    await this.#append((next < 0 ? this.#bytes.length : next + 1) - this.#written);
  }

  async #append(size: number): Promise<void> {
    this.#file ??= await open(this.#path, "a");
    await this.#file.write(this.#bytes, this.#written, size);
    this.#written += size;
  }
}

/** Real mail, where it is at hand. Each ends in a blank line. */
async function letters(): Promise<Buffer[]> {
  const path = Object.keys(MESSAGE_COUNTS)[0] as string;
  const bytes = existsSync(path) ? await readFile(path) : tinyMbox(1200);
  const messages: Buffer[] = [];
  const batches: (readonly MboxPart[])[] = [];
  for await (const parts of splitMbox(pieces(bytes))) batches.push(parts);
  for (const { contentEnd, offset } of batches.flat()) {
    const message = bytes.subarray(offset, contentEnd);
    // Two in a row without a blank line would be separated by what follows, and a piece may end there.
    messages.push(Buffer.concat([message, Buffer.from(message.at(-1) === 0x0a ? "\n" : "\n\n")]));
  }
  return messages;
}

async function* pieces(bytes: Buffer) {
  yield bytes;
}

test(`each message that arrives is numbered once, through ${KILL_COUNT} kills and three rotations`, async () => {
  const directory = await temporaryDirectory();
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const [list, lists, maildir, archive] = ["list.mbox", "lists", "maildir", "archive.db"].map((name) =>
    join(directory, name),
  ) as [string, string, string, string];
  for (const name of ["new", "cur", "tmp"]) await mkdir(join(maildir, name), { recursive: true });
  await mkdir(lists);
  const messages = await letters();
  const third = Math.ceil(messages.length / 3);
  const parts = [0, 1, 2].map((index) => messages.slice(index * third, (index + 1) * third));
  const feeds = [list, join(lists, "a.mbox"), join(lists, "b.mbox")].map(
    (path, index) => new SlowMbox(path, parts[index] as Buffer[]),
  ) as [SlowMbox, SlowMbox, SlowMbox];
  await writeFile(list, "");

  const args = [list, lists, maildir, "--archive", archive, "--coordinator", url, "--processes", "2", "--follow"];
  const numbered: string[] = [];
  let delivered = 0;
  for (let life = 1; life <= KILL_COUNT; life++) {
    const importer = startImporter(...args, "--settle", "3600");
    const untilAnswered = [
      () => sleep(below(400)),
      () => importer.prints(/^process \d started/),
      () => importer.prints(/^read to the end/),
      () => untilStored(archive, Math.floor(delivered / 2)),
    ][below(4)] as () => Promise<void>;
    const feeding = (async () => {
      await Promise.all([...feeds.map((feed) => feed.write(1 / KILL_COUNT)), deliver(maildir, ++delivered)]);
      if (life === 20) await feeds[0].rotateByRenaming(`${list}.1`);
      if (life === 30) await feeds[1].rotateByRenaming(join(lists, "a.mbox.1"));
    })();
    await untilAnswered();
    // The importer, not the writers.
    for (const pid of life % 2 === 0 ? [importer.pid] : [importer.pid, ...importer.workerPids]) kill(pid);
    numbered.push(...(await importer.ended).numbered.map(({ callNumber }) => callNumber));
    await feeding;
    if (life === 40) await feeds[0].rotateByCopying(`${list}-20261125`);
  }
  for (const feed of feeds) {
    await feed.write(1);
    await feed.close();
  }
  const last = startImporter(...args, "--settle", "1");
  await untilStored(archive, messages.length + delivered);
  process.kill(last.pid, "SIGTERM");
  const { status, summary, stderr } = await last.ended;
  expect([status, summary?.outcome, summary?.error]).toEqual([0, "complete", null]);
  expect(stderr).not.toMatch(/it grew after it was stored/);

  const rows = rowsOf(archive);
  expect(new Set(rows.map(({ call_number }) => call_number)).size).toBe(messages.length + delivered);
  const bytesOf = ({ from_line, raw }: { from_line: Uint8Array | null; raw: Uint8Array }) =>
    Buffer.concat([from_line ?? Buffer.alloc(0), raw]).toString("latin1");
  const inMboxes = rows.filter(({ source }) => !source.startsWith("maildir/")).map(bytesOf);
  expect(inMboxes.toSorted()).toEqual(messages.map((message) => message.toString("latin1").slice(0, -1)).toSorted());
  // One line for each, and none for a number that is not in the archive.
  expect(new Set(numbered).size).toBe(numbered.length);
  expect(numbered.filter((callNumber) => !rows.some((row) => row.call_number === callNumber))).toEqual([]);
});

async function deliver(maildir: string, number: number): Promise<void> {
  const name = `${number}.host`;
  await writeFile(join(maildir, "tmp", name), `Subject: letter ${number}\n\n`);
  await rename(join(maildir, "tmp", name), join(maildir, number % 2 === 0 ? "new" : "cur", name));
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

test.each([
  ["is away", false],
  ["accepts connections and never responds", true],
])("what follows waits while its coordinator %s, and ends in order after SIGTERM", async (_, isListening) => {
  const directory = await temporaryDirectory();
  const storeUrl = `sqlite:${join(directory, "store.db")}`;
  const coordinator = await startCoordinator(storeUrl);
  await coordinator.stop();
  const [mbox, archive] = [join(directory, "tiny.mbox"), join(directory, "archive.db")];
  await writeFile(mbox, tinyMbox(3));
  const args = ["--archive", archive, "--coordinator", coordinator.url, "--follow", "--wait", "1", "--settle", "3600"];
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket.on("error", () => {})));
  if (isListening) silent.listen(Number(new URL(coordinator.url).port), "127.0.0.1");
  const importer = startImporter(mbox, ...args);
  if (isListening) await once(silent, "connection");
  else await importer.prints(/waits for the coordinator: coordinator_unreachable.*\(since .* UTC, until it is back\)$/);
  // Longer than it waits at once.
  await sleep(3000);
  for (const socket of sockets) socket.destroy();
  if (isListening) await promisify(silent.close.bind(silent))();
  await startCoordinator(storeUrl, "--port", new URL(coordinator.url).port);
  await untilStored(archive, 2);
  process.kill(importer.pid, "SIGTERM");
  const { status, summary, numbered, stderr } = await importer.ended;
  expect([status, summary?.outcome]).toEqual([0, "complete"]);
  expect(stderr).toMatch(/^process 1 has numbers again: it waited \d+ s$/m);
  expect(numbered.map(({ number, subject }) => [number, subject])).toEqual([
    [1, "1"],
    [2, "2"],
  ]);
  expect(summary?.sources).toMatchObject([{ path: mbox, messages: 3, notices: ["its last message is pending"] }]);
});

test.each([1, 2])(
  "what follows ends when its archive is removed, and makes no new one (processes: %i)",
  async (count) => {
    const directory = await temporaryDirectory();
    const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
    const [mbox, archive] = [join(directory, "tiny.mbox"), join(directory, "archive.db")];
    await writeFile(mbox, tinyMbox(3));
    const args = [
      "--archive",
      archive,
      "--coordinator",
      url,
      "--follow",
      "--settle",
      "3600",
      "--processes",
      `${count}`,
    ];
    const importer = startImporter(mbox, ...args);
    await untilStored(archive, 2);
    await rm(archive);
    await appendFile(mbox, tinyMbox(9).subarray(tinyMbox(3).length));
    const { status, summary } = await importer.ended;
    expect([status, summary?.error?.code, existsSync(archive)]).toEqual([3, "archive_replaced", false]);
  },
);

test("what follows leaves a copy that is put in the place of its archive as it is, and ends", async () => {
  const { archive, importer } = await following();
  execute(archive, `vacuum into '${archive}.copy'`);
  const copy = await readFile(`${archive}.copy`);
  await rename(`${archive}.copy`, archive);
  process.kill(importer.pid, "SIGTERM");
  const { status, summary } = await importer.ended;
  expect([status, summary?.error?.code]).toEqual([3, "archive_replaced"]);
  expect((await readFile(archive)).equals(copy)).toBe(true);
});

test.each([
  ["moved away", (numbers: string) => rename(numbers, `${numbers}.1`)],
  ["emptied", (numbers: string) => truncate(numbers)],
  ["cut in its first line", (numbers: string) => truncate(numbers, 20)],
  ["cut", async (numbers: string) => await truncate(numbers, (await readFile(numbers)).length - 30)],
  [
    "replaced by an older copy",
    async (numbers: string) => {
      const [header] = (await readFile(numbers, "utf8")).split("\n");
      await writeFile(`${numbers}.old`, `${header}\n`);
      await rename(`${numbers}.old`, numbers);
    },
  ],
])("a file of numbers that was %s has all numbers again when the next one is issued", async (_, change) => {
  const { mbox, archive, numbers, importer } = await following();
  const [header] = (await readFile(numbers, "utf8")).split("\n");
  await change(numbers);
  await appendFile(mbox, tinyMbox(9).subarray(tinyMbox(3).length));
  await untilStored(archive, 8);
  process.kill(importer.pid, "SIGTERM");
  const { status, numbered, stderr } = await importer.ended;
  const lines = (await readFile(numbers, "utf8")).trimEnd().split("\n");
  expect([status, lines[0]]).toEqual([0, header]);
  const found = lines.flatMap((line) => /^\{"number":"(\w+)".*\}$/.exec(line)?.[1] ?? []);
  expect(new Set(found)).toEqual(new Set(numbered.map(({ callNumber }) => callNumber)));
  expect(stderr).toMatch(/^process 1 wrote all numbers into the file of numbers/m);
});

test("a file of numbers that is exported repeatedly during an import lacks none in the end", async () => {
  const directory = await temporaryDirectory();
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const [mbox, archive, link, numbers] = ["many.mbox", "archive.db", "numbers.ndjson", "there.ndjson"].map((name) =>
    join(directory, name),
  ) as [string, string, string, string];
  await writeFile(mbox, tinyMbox(20_000));
  await symlink(numbers, link);
  const importer = startImporter(
    mbox,
    "--archive",
    archive,
    "--coordinator",
    url,
    "--numbers",
    link,
    "--processes",
    "2",
  );
  const over = new AbortController();
  void importer.ended.then(() => over.abort());
  await untilStored(archive, 1);
  let count = 0;
  for (; !over.signal.aborted; count++) {
    const words = [CALLNUMBER_ARCHIVE, "numbers", "export", "--archive", archive, "--to", link];
    await promisify(execFile)(process.execPath, words);
  }
  expect(await importer.ended).toMatchObject({ status: 0, summary: { messages: { stored: 20_000 } } });
  const found = (await readFile(numbers, "utf8")).match(/(?<=^\{"number":")\w+/gm);
  expect([new Set(found).size, count > 1]).toEqual([20_000, true]);
});

/** Follows a mailbox of three messages, of which it has stored two. */
async function following() {
  const directory = await temporaryDirectory();
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const [mbox, archive, numbers] = ["tiny.mbox", "archive.db", "numbers.ndjson"].map((name) =>
    join(directory, name),
  ) as [string, string, string];
  await writeFile(mbox, tinyMbox(3));
  const args = ["--archive", archive, "--coordinator", url, "--follow", "--settle", "3600", "--numbers", numbers];
  const importer = startImporter(mbox, ...args, "--processes", "1");
  await untilStored(archive, 2);
  return { mbox, archive, numbers, importer };
}

function execute(archive: string, sql: string): void {
  using database = new DatabaseSync(archive);
  database.exec(sql);
}
