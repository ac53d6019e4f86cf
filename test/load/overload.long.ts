/**
 * Overload: `npm run overload -- --minutes 10 --times 5`. Measures what a coordinator can do on this machine, offers so many times that, and prints
 * what is served and shed, how long others waited beside it, quiet and loaded, and what is left afterwards. Times are told and not judged.
 */
import { cpus, loadavg } from "node:os";
import { env } from "node:process";
import { expect, test } from "vitest";
import { wrappedLines } from "../figures-table.js";
import { signsOfLife } from "../signs-of-life.js";
import type { LoadResult } from "./load.js";
import { type OverloadFindings, playOverload } from "./overload.js";

const MINUTES = Number(env["CALLNUMBER_MINUTES"] ?? 10);
const TIMES = Number(env["CALLNUMBER_TIMES"] ?? 5);
/** A tail wants many requests: one long collection of garbage in ten seconds would be all of it. */
const MEASURE_MS = Math.max(10_000, MINUTES * 6_000);
/** For a log or a store that was opened meanwhile. */
const DESCRIPTORS_OF_OWN = 10;
/** Memory that goes on growing under the same load is lost; the heap comes and goes by some per cent. */
const LEVEL = 1.25;

test(`${MINUTES} minutes at ${TIMES} times what a coordinator can do`, async () => {
  const loadBefore = loadavg()[0] as number;
  const signs = signsOfLife();
  const tell = (what: string, durationMs: number) => signs.showTimed(what, durationMs);
  const findings = await playOverload({
    durationMs: MINUTES * 60_000,
    times: TIMES,
    measureMs: MEASURE_MS,
    isFloodModest: true,
    tell,
  });
  signs.end();
  console.log(wrappedLines(tableOf(findings, loadBefore)));
  const { flood, loaded, figures, runs, exitCode } = findings;
  for (const { shed, unanswered } of [flood, loaded]) {
    expect(Object.keys(shed).filter((code) => !["overloaded", "rate_limited"].includes(code))).toEqual([]);
    expect(unanswered).toBe(0);
  }
  expect(figures.after.descriptorCount).toBeLessThan(figures.before.descriptorCount + DESCRIPTORS_OF_OWN);
  expect(figures.rssMb.laterHalf).toBeLessThan(figures.rssMb.firstHalf * LEVEL);
  expect(runs).toMatchObject({ repeated: 0, notInLedger: 0, inLedgerOnly: 0, ledger: runs.served });
  expect(exitCode).toBe(0);
});

function tableOf(findings: OverloadFindings, loadBefore: number): string {
  const { capacityPerSecond, quiet, flood, loaded, after, figures, looks, runs } = findings;
  const cpuMs = figures.during.cpuMs - figures.before.cpuMs;
  const phase = (name: string, one: LoadResult) => {
    const shed = Object.entries(one.shed).map(([code, count]) => `${perSecond(count, one)} ${code}`);
    return (
      `${name.padEnd(8)} offered ${perSecond(one.due, one)}/s, sent ${perSecond(one.sent, one)}/s, served ${perSecond(one.served, one)}/s, ` +
      `shed a second: ${shed.join(", ") || "0"}, unanswered ${one.unanswered}; served p50 ${ms(one.p50Ms)}, p99 ${ms(one.p99Ms)}`
    );
  };
  const figure = (name: string, { rssMb, descriptorCount }: (typeof figures)["before"]) =>
    `${name} ${rssMb.toFixed(0)} MB, ${descriptorCount} descriptors`;
  return [
    "",
    `${cpus().length} cores, load before ${loadBefore.toFixed(1)}; the load runs on the same machine. Capacity ${capacityPerSecond.toFixed(0)} leases a second`,
    phase("flood", flood),
    `callers beside it, from an address of their own, who stay away for as long as they are told:`,
    phase("quiet", quiet),
    phase("loaded", loaded),
    phase("after", after),
    `p99 loaded : quiet = ${(loaded.p99Ms / quiet.p99Ms).toFixed(2)}, p50 ${(loaded.p50Ms / quiet.p50Ms).toFixed(2)}; ${loaded.late} of ${loaded.sent} requests were sent late by the load itself`,
    `the coordinator took ${(cpuMs / loaded.tookMs).toFixed(2)} cores during the load, ${((cpuMs * 1_000) / (flood.sent + loaded.sent)).toFixed(0)} µs a request`,
    `${figure("before", figures.before)}; ${figure("at most", figures.during)}; ${figure("after", figures.after)}; ` +
      `median of the first half of the load ${figures.rssMb.firstHalf.toFixed(0)} MB, of the other ${figures.rssMb.laterHalf.toFixed(0)} MB`,
    `operators asked ${looks.count} times during the load: ${looks.failed} failed, slowest ${ms(looks.slowestMs)}`,
    `runs: ${runs.served} served, ${runs.ledger} in the ledger, ${runs.repeated} repeated, ${runs.notInLedger} not in the ledger, ${runs.inLedgerOnly} only there`,
    "",
  ].join("\n");
}

function perSecond(count: number, { tookMs }: LoadResult): string {
  return ((count * 1_000) / tookMs).toFixed(0);
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
