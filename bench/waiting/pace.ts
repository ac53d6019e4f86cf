/** An importer that makes numbers at a fixed pace, and its account of the time that it lost. */
import { setImmediate as turn } from "node:timers/promises";
import { createClient } from "@callnumber/client";
import type { SlowSource } from "./slow-source.js";

export const PACE_PER_SECOND = 10_000_000;
/** What was due while the machine stopped is not made up for beyond this: that would be a faster importer. */
const PIECE_COUNT_MAX = 20_000;

export interface Loss {
  /** 0 to 1, of the measured time. */
  readonly shareWhenWarm: number;
  readonly longestWhenWarmMs: number;
  readonly firstSecondMs: number;
  /** While it is measured. */
  readonly leasesPerSecond: number;
}

export interface PaceOptions {
  readonly refill: "ahead" | "when_empty";
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

export async function minted(source: SlowSource, { refill, warmUpMs, measuredMs }: PaceOptions): Promise<Loss> {
  const client = createClient({ source, holder: { name: "bench" }, refill });
  const bytes = new Uint8Array(PIECE_COUNT_MAX * 8);
  const startedAtMs = performance.now();
  const endAtMs = startedAtMs + warmUpMs + measuredMs;
  const waits: { readonly atMs: number; readonly ms: number }[] = [];
  let made = 0;
  let lostMs = 0;
  for (let nowMs = startedAtMs; nowMs < endAtMs; nowMs = performance.now()) {
    const due = Math.floor(((nowMs - startedAtMs - lostMs) / 1000) * PACE_PER_SECOND) - made;
    const count = Math.min(due, PIECE_COUNT_MAX);
    if (count > 0) {
      made += due;
      const ms = await timeWaiting(client.takeBytes(bytes.subarray(0, count * 8)));
      if (ms > 0) waits.push({ atMs: nowMs - startedAtMs, ms });
      lostMs += ms;
    }
    await turn();
  }
  const leases = source.asked.filter(({ atMs }) => atMs >= warmUpMs).length;
  await client.close();
  const whenWarm = waits.filter(({ atMs }) => atMs >= warmUpMs).map(({ ms }) => ms);
  return {
    shareWhenWarm: sumOf(whenWarm) / measuredMs,
    longestWhenWarmMs: Math.max(0, ...whenWarm),
    firstSecondMs: sumOf(waits.filter(({ atMs }) => atMs < 1_000).map(({ ms }) => ms)),
    leasesPerSecond: leases / (measuredMs / 1000),
  };
}

/** How long a call took; 0 when the event loop did not turn meanwhile, because then it only worked. */
async function timeWaiting(call: Promise<void>): Promise<number> {
  const startedAtMs = performance.now();
  let hasTurned = false;
  const immediate = setImmediate(() => {
    hasTurned = true;
  });
  await call;
  clearImmediate(immediate);
  return hasTurned ? performance.now() - startedAtMs : 0;
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
