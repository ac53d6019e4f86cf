/** What a page of an archive with 100,000 messages costs the reader, and the memory that it takes. Target: 50 ms of CPU a page. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { messageInserter } from "../packages/archive/src/archive/insert-message.js";
import { inTransaction, openDatabase } from "../packages/archive/src/archive/schema.js";
import { startReader, textOf } from "../packages/archive/test/reading.js";
import { folderForTest } from "../test/processes/command.js";
import { describeMachine, formatFigure, size } from "./harness.js";
import { publish } from "./report.js";

const MESSAGE_COUNT = size(100_000, 1_000);
const REQUEST_COUNT = size(200, 5);
/** A list of 60 months, one of which has a fifth of its messages. */
const MONTH_COUNT = 60;
const THREAD_LENGTH = 7;
const TARGET_MS = 50;
const TICK_MS = 10;
const WORDS = "seed bean tomato snail fence shed compost water rain spade garden railway carpenter ladder wool".split(
  " ",
);

const numberAt = (index: number) =>
  encodeCallNumber({ version: 0, run: 1 + Math.floor(index / 2 ** 14), sequence: index % 2 ** 14 });

function fill(path: string): void {
  const database = openDatabase(path);
  const insert = messageInserter(database);
  inTransaction(database, () => {
    database.exec("insert into facts values ('store_id', 'bench'), ('namespace', 'main')");
    for (let index = 0; index < MESSAGE_COUNT; index++) {
      const root = index - (index % THREAD_LENGTH);
      const month = index % 5 === 0 ? 30 : Math.floor((index / MESSAGE_COUNT) * MONTH_COUNT);
      const date = new Date(Date.UTC(2015, month, 1 + (index % 28), 10, index % 60)).toISOString();
      const words = Array.from({ length: 200 }, (_, at) => WORDS[(index * 31 + at * at) % WORDS.length]).join(" ");
      const body = `> ${words.slice(0, 70)}\n\n${words.replaceAll(/(.{60}) /g, "$1\n")}\nword${index}\n-- \nAda\n`;
      const messageId = `<${index}@bench.example>`;
      const [from, subject] = [
        `Person ${index % 100} <p${index % 100}@bench.example>`,
        `${index === root ? "" : "Re: "}About ${root}`,
      ];
      const raw = Buffer.from(`From: ${from}\nSubject: ${subject}\nMessage-ID: ${messageId}\nDate: ${date}\n\n${body}`);
      const contentHash = createHash("sha256").update(raw).digest();
      const hashes = { contentHash, messageHash: contentHash, bodyHash: contentHash };
      const references = index === root ? null : `<${root}@bench.example>`;
      const header = {
        messageId,
        from,
        subject,
        to: "list@bench.example",
        date,
        dateHeader: date,
        inReplyTo: references,
        references,
      };
      const place = { source: "bench.mbox", number: index + 1, byteOffset: index, fromLine: null, problem: null };
      insert(numberAt(index), "bench.mbox", {
        ...header,
        ...place,
        ...hashes,
        raw,
        list: `list-${index % 3}`,
        isListGiven: true,
      });
    }
  });
  database.close();
}

/** Of the process with all its threads, in ms. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function memoryOf(pid: number, field: "VmHWM" | "VmRSS"): number {
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1000;
}

test("pages of a large archive", async () => {
  const path = join(await folderForTest(), "mail.db");
  fill(path);
  const reader = await startReader(path);
  const startedAtCpu = cpuOf(reader.pid);
  await expect
    .poll(() => textOf(`${reader.url}/search`), { timeout: 1_700_000, interval: 1_000 })
    .not.toContain("is being built");
  const indexingMs = cpuOf(reader.pid) - startedAtCpu;
  const random = (_: unknown, index: number) => Math.floor((((index * 7_919) % 1_000) / 1_000) * MESSAGE_COUNT);
  const picks = Array.from({ length: REQUEST_COUNT }, random);
  const pages: readonly (readonly [name: string, path: (pick: number) => string])[] = [
    ["all lists", () => "/"],
    ["a list", () => "/list/list-1"],
    ["a month, 300 messages of 6,667", (pick) => `/list/list-1/2017-07?page=${1 + (pick % 20)}`],
    ["a message", (pick) => `/message/${numberAt(pick)}`],
    ["a raw message", (pick) => `/message/${numberAt(pick)}/raw`],
    ["a search for a rare word", (pick) => `/search?q=word${pick}`],
    ["a search for a word that all have", () => "/search?q=garden"],
    ["a search for five such words in a list", () => "/search?q=garden+shed+snail+bean+rain&list=list-1"],
    ["a phrase", () => "/search?q=%22garden+shed%22"],
    ["the feed", () => "/feed.atom"],
    ["a missing message", (pick) => `/message/${numberAt(pick).toLowerCase()}x`],
  ];
  const rows: string[][] = [];
  for (const [name, pathOf] of pages) {
    await fetch(reader.url + pathOf(0)).then((response) => response.text());
    const before = cpuOf(reader.pid);
    for (const pick of picks) await fetch(reader.url + pathOf(pick)).then((response) => response.text());
    const cpuMs = (cpuOf(reader.pid) - before) / REQUEST_COUNT;
    rows.push([name, formatFigure(cpuMs), formatFigure(memoryOf(reader.pid, "VmRSS"))]);
  }
  publish("reader", {
    heading: "A page of an archive with 100,000 messages",
    sentences: [
      `${describeMachine()} ${REQUEST_COUNT} requests each, one after another; CPU of the whole process; the target is ${TARGET_MS} ms.`,
      `The index took ${formatFigure(indexingMs / MESSAGE_COUNT)} ms of CPU a message. The most memory was ${formatFigure(memoryOf(reader.pid, "VmHWM"))} MB.`,
    ],
    table: { columns: ["page", "CPU, ms", "memory after it, MB"], rows },
  });
});
