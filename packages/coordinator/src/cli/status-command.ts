/** `status`: how much is used, how much is left, how long it will last. */
import { statusAnswerSchema } from "@callnumber/protocol/schemas";
import { type GuardAnswer, pathOf, type StatusAnswer, type UseRate } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { askCoordinator } from "./ask-coordinator.js";
import { alarmsInALine, askCapacity } from "./capacity-command.js";
import { coordinatorOption, namespaceOption } from "./options.js";
import { grouped, instant, print, printJson } from "./print.js";

interface Options {
  readonly coordinator: string;
  readonly namespace: string;
  readonly json?: boolean;
}

const HOUR_MS = 3_600_000;

export function statusCommand(): Command {
  return new Command("status")
    .summary("high-water mark, runs left, forecast")
    .description("Shows the state of a namespace.")
    .addOption(coordinatorOption())
    .addOption(namespaceOption())
    .action(async ({ coordinator, namespace, json }: Options) => {
      const status = await askCoordinator(coordinator, pathOf("status", { namespace }), statusAnswerSchema);
      if (json) return printJson(status);
      print(`${inWords(status)}\n  alarms             ${await alarmsOf(coordinator, namespace)}`);
    });
}

/** What is known of the state is told all the same. */
async function alarmsOf(coordinator: string, namespace: string): Promise<string> {
  return await askCapacity(coordinator, namespace).then(
    ({ alarms }) => alarmsInALine(alarms),
    (error: Error) => `not known: ${error.message}`,
  );
}

function inWords(status: StatusAnswer): string {
  const { namespace, store, coordinator, storeId, version, firstRun, runsUsed, runsLeft, callNumbersLeft } = status;
  return [
    `namespace ${namespace} on the ${store} store of coordinator ${coordinator}`,
    `  store id           ${storeId}`,
    `  version            ${version}, first run ${grouped(firstRun)}`,
    `  high-water mark    ${highWaterMarkInWords(status)}`,
    `  runs used          ${grouped(runsUsed)}`,
    `  runs left          ${grouped(runsLeft)}, for ${grouped(callNumbersLeft)} call numbers`,
    `  guard              ${guardInWords(status.guard)}`,
    `  room               ${grouped(status.guard.roomRuns)} runs may be leased at once, below the clock line`,
    ...status.rates.map(rateInWords),
  ].join("\n");
}

function highWaterMarkInWords({ highWaterMark, runsUsed, lastLeaseAtMs }: StatusAnswer): string {
  if (runsUsed === 0) return "no run leased yet";
  const when = lastLeaseAtMs === null ? "nothing leased yet" : `last lease at ${instant(lastLeaseAtMs)}`;
  return `run ${grouped(highWaterMark)}, ${when}`;
}

function guardInWords({ state, code, sinceMs, explanation, generation, nodeCount }: GuardAnswer): string {
  const nodes = nodeCount === 1 ? "1 data node" : `${nodeCount} data nodes`;
  if (state === "open") return `open since ${instant(sinceMs)}; generation ${generation}, ${nodes}`;
  return `${state === "fenced" ? "FENCED" : "in doubt"} since ${instant(sinceMs)} (${code})\n      ${explanation}`;
}

function rateInWords({ windowMs, runs, exhaustedAtMs }: UseRate): string {
  const hours = windowMs / HOUR_MS;
  const window = hours === 1 ? "last hour" : hours === 24 ? "last day" : `last ${hours / 24} days`;
  const end = exhaustedAtMs === null ? "" : `; at this rate the runs last until ${untilWhen(exhaustedAtMs)}`;
  return `  ${window.padEnd(17)}  ${grouped(runs)} ${runs === 1 ? "run" : "runs"}${end}`;
}

/** The day when it is near; the year when the day would only pretend to be exact. */
function untilWhen(timeMs: number): string {
  const date = new Date(timeMs);
  const isNear = timeMs - Date.now() < 2 * 365 * 24 * HOUR_MS;
  if (isNear) return date.toISOString().slice(0, 10);
  const year = date.getUTCFullYear();
  return `the year ${year < 10_000 ? year : grouped(year)}`;
}
