/** What an export costs, by the length of the ledger: leases a second, memory of the coordinator, and what others feel of it. */
import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { EXPORT_FORMATS, type ExportFormat, OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { filledPath, pathOf } from "@callnumber/protocol/wire";
import { afterAll, expect, test } from "vitest";
import type { ServingProcess } from "../test/processes/command.js";
import { nonceOfFilled } from "./filled-ledgers.js";
import { machineInWords } from "./machine.js";
import { figure, quantile, spreadInWords } from "./quantiles.js";
import { publish, type Section } from "./report.js";
import { servedOnRedis, servedOnSqlite } from "./served-ledgers.js";

const SIZES = [1_000, 100_000, Number(process.env["CALLNUMBER_BENCH_LEASES"] ?? 1_000_000)];
const NAMESPACE = "main";
const SAMPLE_EVERY_MS = 20;
const ASKED_COUNT = 300;
const ROUND_COUNT = 5;

const sections: Section[] = [];

afterAll(() => publish({ bench: "ledger-export", sections }));

test("exports from the embedded store", async () => {
  sections.push(await measured("Exports from the embedded store", await servedOnSqlite(NAMESPACE, SIZES)));
});

test("exports from Redis", async () => {
  sections.push(await measured("Exports from Redis", await servedOnRedis(NAMESPACE, SIZES)));
});

async function measured(heading: string, coordinators: readonly ServingProcess[]): Promise<Section> {
  const rows: string[][] = [];
  for (const format of EXPORT_FORMATS) {
    for (const [index, size] of SIZES.entries()) {
      const coordinator = coordinators[index] as ServingProcess;
      await exported(coordinator, format, 1_000);
      const before = residentMebibytes(coordinator);
      const { seconds, byteCount, greatestMebibytes } = await exported(coordinator, format);
      rows.push([
        format,
        size.toLocaleString("en-US"),
        figure(size / seconds),
        figure(byteCount / 2 ** 20 / seconds),
        figure(greatestMebibytes - before),
      ]);
    }
  }
  const latencies = await reportsBeside(coordinators.at(-1) as ServingProcess);
  return {
    heading,
    sentences: [
      `${machineInWords()} Ledgers filled past the store, as the store writes; each behind a coordinator of its own, which is a process; the reader is this one, on the same machine. Memory is the greatest resident size while the export ran, less that before it, seen every ${SAMPLE_EVERY_MS} ms.`,
      `A report over HTTP, which waits for the store as a lease does, one after the other, on the largest ledger, in turns of ${ASKED_COUNT}: ${spreadInWords(latencies.quiet)} µs without and ${spreadInWords(latencies.beside)} µs beside an export (medians and quartiles); 99 of 100 within ${figure(quantile(latencies.quiet, 0.99))} and ${figure(quantile(latencies.beside, 0.99))} µs.`,
    ],
    table: { columns: ["format", "leases", "leases/s", "MiB/s", "memory, MiB more"], rows },
  };
}

interface Exported {
  readonly seconds: number;
  readonly byteCount: number;
  readonly greatestMebibytes: number;
}

async function exported(
  coordinator: ServingProcess,
  format: ExportFormat,
  toRun = Number.MAX_SAFE_INTEGER,
): Promise<Exported> {
  let greatestMebibytes = 0;
  const look = () => (greatestMebibytes = Math.max(greatestMebibytes, residentMebibytes(coordinator)));
  const sampling = setInterval(look, SAMPLE_EVERY_MS);
  const begin = performance.now();
  let byteCount = 0;
  for await (const piece of await exportOf(coordinator, format, toRun)) byteCount += piece.length;
  const seconds = (performance.now() - begin) / 1_000;
  clearInterval(sampling);
  look();
  return { seconds, byteCount, greatestMebibytes };
}

async function exportOf({ url }: ServingProcess, format: ExportFormat, toRun: number, signal?: AbortSignal) {
  const path = filledPath(OPERATOR_ROUTES.export, { namespace: NAMESPACE });
  const bound = toRun === Number.MAX_SAFE_INTEGER ? "" : `&toRun=${toRun}`;
  const { status, body } = await fetch(`${url}${path}?format=${format}${bound}`, { signal: signal ?? null });
  expect(status).toBe(200);
  if (body === null) throw new Error("an export without a body");
  return body;
}

/** Latencies in microseconds, in turns: nothing else, and an export that is taken as fast as it comes. */
async function reportsBeside(coordinator: ServingProcess) {
  const quiet: number[] = [];
  const beside: number[] = [];
  for (let round = 0; round < ROUND_COUNT; round++) {
    quiet.push(...(await reported(coordinator)));
    const ending = new AbortController();
    const taking = take(coordinator, ending.signal);
    await delay(200);
    beside.push(...(await reported(coordinator)));
    ending.abort();
    await taking;
  }
  return { quiet, beside };
}

/** Again and again until the signal comes. */
async function take(coordinator: ServingProcess, signal: AbortSignal): Promise<void> {
  try {
    while (!signal.aborted) {
      for await (const _ of await exportOf(coordinator, "ndjson", Number.MAX_SAFE_INTEGER, signal));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function reported({ url }: ServingProcess): Promise<readonly number[]> {
  const latencies: number[] = [];
  const headers = { "content-type": "application/json" };
  for (let run = 1; run <= ASKED_COUNT; run++) {
    const path = pathOf("report", { namespace: NAMESPACE, run });
    const body = JSON.stringify({ nonce: nonceOfFilled(run), lastSequence: 16_383, state: "exhausted" });
    const begin = performance.now();
    const answer = await fetch(url + path, { method: "POST", headers, body });
    await answer.text();
    latencies.push((performance.now() - begin) * 1_000);
    expect(answer.status).toBe(200);
  }
  return latencies;
}

function residentMebibytes({ child }: ServingProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1_024;
}
