/** The state of a namespace in words, for people. */
import type { GuardAnswer, StatusAnswer, UseRate } from "@callnumber/protocol/wire";
import type { Paint, Style } from "./colours.js";
import { grouped, instant } from "./print.js";

const HOUR_MS = 3_600_000;

const GUARD_STYLES: Readonly<Record<GuardAnswer["state"], Style>> = {
  open: "green",
  in_doubt: "yellow",
  fenced: "red",
};

export function statusInWords(status: StatusAnswer, paint: Paint): string {
  const { namespace, store, coordinator, storeId, version, firstRun, runsUsed, runsLeft, callNumbersLeft } = status;
  return [
    `namespace ${paint("bold", namespace)} on the ${store} store of coordinator ${coordinator}`,
    `  store id           ${storeId}`,
    `  version            ${version}, first run ${grouped(firstRun)}`,
    `  high-water mark    ${highWaterMarkInWords(status)}`,
    `  runs used          ${grouped(runsUsed)}`,
    `  runs left          ${grouped(runsLeft)}, for ${grouped(callNumbersLeft)} call numbers`,
    `  guard              ${guardInWords(status.guard, paint)}`,
    `  room               ${grouped(status.guard.roomRuns)} runs may be leased at once, below the clock line`,
    ...lastRecoveryInWords(status.guard),
    ...status.rates.map(rateInWords),
  ].join("\n");
}

function highWaterMarkInWords({ highWaterMark, runsUsed, lastLeaseAtMs }: StatusAnswer): string {
  if (runsUsed === 0) return "no run leased yet";
  const when = lastLeaseAtMs === null ? "nothing leased yet" : `last lease at ${instant(lastLeaseAtMs)}`;
  return `run ${grouped(highWaterMark)}, ${when}`;
}

function guardInWords(guard: GuardAnswer, paint: Paint): string {
  const { state, code, sinceMs, explanation, generation, nodeCount } = guard;
  const nodes = nodeCount === 1 ? "1 data node" : `${nodeCount} data nodes`;
  if (state === "open")
    return `${paint(GUARD_STYLES.open, "open")} since ${instant(sinceMs)}; generation ${generation}, ${nodes}`;
  const word = paint(GUARD_STYLES[state], state === "fenced" ? "FENCED" : "in doubt");
  return `${word} since ${instant(sinceMs)} (${code})\n      ${explanation}`;
}

function lastRecoveryInWords({ lastRecovery }: GuardAnswer): readonly string[] {
  if (lastRecovery === null) return [];
  return [`  last recovery      ${lastRecovery.explanation} (${instant(lastRecovery.atMs)})`];
}

/** As a row of `status` and of `capacity`. */
export function rateInWords({ windowMs, runs, runsPerDay, exhaustedAtMs }: UseRate): string {
  const hours = windowMs / HOUR_MS;
  const window = hours === 1 ? "last hour" : hours === 24 ? "last day" : `last ${hours / 24} days`;
  const end = exhaustedAtMs === null ? "" : `; at this rate the runs last until ${untilWhen(exhaustedAtMs)}`;
  return `  ${window.padEnd(17)}  ${grouped(runs)} ${runs === 1 ? "run" : "runs"}, ${grouped(Math.round(runsPerDay))} a day${end}`;
}

/** The day when it is near; the year when the day would only pretend to be exact. */
function untilWhen(timeMs: number): string {
  const date = new Date(timeMs);
  const isNear = timeMs - Date.now() < 2 * 365 * 24 * HOUR_MS;
  if (isNear) return date.toISOString().slice(0, 10);
  const year = date.getUTCFullYear();
  return `the year ${year < 10_000 ? year : grouped(year)}`;
}
