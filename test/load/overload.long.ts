/**
 * Overload: `npm run overload -- --minutes 10 --times 5`. Measures what a coordinator can do on this machine, offers so many times that, and prints
 * what is served and shed, how long the served ones took, quiet and loaded, and what is left afterwards.
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
const MEASURE_MS = 10_000;

test(`${MINUTES} minutes at ${TIMES} times what a coordinator can do`, async () => {
  const loadBefore = loadavg()[0] as number;
  const signs = signsOfLife();
  const tell = (what: string, durationMs: number) => signs.showTimed(what, durationMs);
  const findings = await playOverload({ durationMs: MINUTES * 60_000, times: TIMES, measureMs: MEASURE_MS, tell });
  signs.end();
  console.log(wrappedLines(tableOf(findings, loadBefore)));
  const { loaded, runs, exitCode } = findings;
  expect(Object.keys(loaded.shed).filter((code) => !["overloaded", "rate_limited"].includes(code))).toEqual([]);
  expect(loaded.unanswered).toBe(0);
  expect(runs).toMatchObject({ repeated: 0, notInLedger: 0, inLedgerOnly: 0, ledger: runs.served });
  expect(exitCode).toBe(0);
});

function tableOf(findings: OverloadFindings, loadBefore: number): string {
  const { capacityPerSecond, quiet, loaded, after, figures, looks, runs } = findings;
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
    phase("quiet", quiet),
    phase("loaded", loaded),
    phase("after", after),
    `p99 loaded : quiet = ${(loaded.p99Ms / quiet.p99Ms).toFixed(2)}, p50 ${(loaded.p50Ms / quiet.p50Ms).toFixed(2)}; ${loaded.late} of ${loaded.sent} requests were sent late by the load itself`,
    `${figure("before", figures.before)}; ${figure("at most", figures.during)}; ${figure("after", figures.after)}`,
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
