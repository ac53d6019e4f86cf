/** Measures our client and other makers, as plain JavaScript. Started by ../call-numbers.bench.ts with the URL of a Redis. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describeMachine, formatFigure, formatSpread, median, ratios, roundCount, size } from "../harness.js";
import { publish, type Section } from "../report.js";
import { makersWith } from "./makers.js";
import { openTicketServer } from "./ticket-server.js";
import { type Maker, type Timed, timeMakers } from "./timing.js";

const PACKAGES = fileURLToPath(new URL("../../../node_modules", import.meta.url));
const ROUND_COUNT = roundCount(21);
const SAMPLE_COUNT = size(1_000_000, 10_000);
/** A slow maker makes fewer. */
const SAMPLE_MS = 1_000;
const PAUSE_EVERY = 200_000;

interface Result extends Maker, Timed {}

const [redisUrl] = process.argv.slice(2);
if (redisUrl === undefined) throw new TypeError("pass the URL of a Redis");

const tickets = await openTicketServer(redisUrl);
const makers = await makersWith(tickets);
const timed = await timeMakers(makers, ROUND_COUNT);
const results = makers.map((maker, index): Result => Object.assign(maker, timed[index] as Timed));
const kept: Section = {
  heading: "A number that is kept",
  sentences: [
    `${describeMachine()} All makers in one process, in turns, in ${ROUND_COUNT} rounds; medians, and the quartiles of the ratios within a round.`,
    "Each number is put into an array and stays there until a thousand more have come. A thousand that come together are kept as they come.",
    aheadOfOurs("keptNs"),
  ],
  table: times("keptNs"),
};
const read: Section = {
  heading: "A number that is read",
  sentences: [
    "Every character is read, as by a program that writes it: a text that was only concatenated is built here. Of `fillBytes` and `fillNumbers` the bytes and numbers are added up.",
    aheadOfOurs("readNs"),
  ],
  table: times("readNs"),
};
const rows: string[][] = [];
for (const result of results) {
  const texts = await sampled(result);
  // Those that fill an array generate the numbers of take().
  if (texts === undefined) continue;
  const repeatCount = texts.length - new Set(texts).size;
  const repeats = `${repeatCount.toLocaleString("en-US")} of ${texts.length.toLocaleString("en-US")}`;
  rows.push([result.name, versionOf(result.package), result.setting ?? "-", String(texts[0]?.length), repeats]);
}
tickets.close();
const numbers: Section = {
  heading: "What the numbers are",
  sentences: ["Repeats are counted among numbers that are made as fast as possible."],
  table: { columns: ["maker", "version", "setting", "characters", "repeats"], rows },
};
publish("call-numbers", kept, read, numbers);

/** Names the makers that are faster than nextSync(), as the floor and our own other forms may be. */
function aheadOfOurs(figure: keyof Timed): string {
  const ours = median((results[1] as Result)[figure]);
  const ahead = results.slice(2).filter((result) => median(result[figure]) < ours);
  if (ahead.length === 0) return "None is ahead of nextSync().";
  return `Ahead of nextSync(): ${ahead.map(({ name }) => name).join(", ")}.`;
}

function times(figure: keyof Timed): Section["table"] {
  const [floor, ours] = results as [Result, Result];
  return {
    columns: ["maker", "ns a number", "a second", "times the floor", "times nextSync()"],
    rows: results.map((result) => {
      const ns = median(result[figure]);
      const [timesFloor, timesOurs] = [floor, ours].map((base) => formatSpread(ratios(result[figure], base[figure])));
      return [result.name, formatFigure(ns), perSecond(ns), timesFloor ?? "", timesOurs ?? ""];
    }),
  };
}

function perSecond(ns: number): string {
  const count = 1e9 / ns;
  return count >= 1e6 ? `${formatFigure(count / 1e6)} million` : formatFigure(count);
}

async function sampled({ sample, keptNs }: Result): Promise<readonly string[] | undefined> {
  const count = Math.min(SAMPLE_COUNT, Math.ceil((SAMPLE_MS * 1e6) / median(keptNs)));
  const texts: string[] = [];
  for (let calls = 0; texts.length < count; calls++) {
    // A client leases runs.
    if (calls % PAUSE_EVERY === 0) await sleep(2);
    const made = await sample();
    if (made === undefined) return undefined;
    if (typeof made === "string") texts.push(made);
    else texts.push(...(made as readonly string[]));
  }
  return texts;
}

function versionOf(name: string | undefined): string {
  if (name === undefined) return "-";
  return (JSON.parse(readFileSync(join(PACKAGES, name, "package.json"), "utf8")) as { version: string }).version;
}
