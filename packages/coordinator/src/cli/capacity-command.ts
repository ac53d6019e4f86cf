/** `capacity`: what is used and left, how fast it goes and until when, who takes it, and what to do before it hurts. */
import type { Alarm, CapacityAnswer, HolderUse } from "@callnumber/protocol/operator";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { capacityAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { filledPath } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { type Asked, askCoordinator } from "./ask-coordinator.js";
import { tokenFileOption } from "./bearer-token.js";
import { coordinatorOption, namespaceOption } from "./options.js";
import { grouped, instant, print, printJson, printPainted } from "./print.js";
import { shownFields } from "./shown-fields.js";
import { rateInWords } from "./status-words.js";
import { type Column, nameCell } from "./table.js";
import { terminalTable } from "./terminal-table.js";

interface Options {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  readonly json?: boolean;
}

/** More would push what matters off the screen; --json has all. */
const HOLDERS_SHOWN = 20;

const HOLDER_COLUMNS: readonly Column<HolderUse>[] = [
  { heading: "HOLDER", cellOf: ({ name }) => nameCell(name), shrinksTo: 8, expendability: 0 },
  { heading: "HOSTS", cellOf: hostsInWords, shrinksTo: 8, expendability: 5 },
  { heading: "PROCESSES", cellOf: ({ processCount }) => processCount, expendability: 6 },
  { heading: "LEASES", cellOf: ({ leaseCount }) => leaseCount, expendability: 4 },
  { heading: "RUNS", cellOf: ({ runCount }) => runCount, expendability: 0 },
  { heading: "SHARE", cellOf: ({ share }) => `${(share * 100).toFixed(1)} %`, expendability: 0 },
  { heading: "WASTED", cellOf: ({ wastedRunCount }) => wastedRunCount, expendability: 1 },
  { heading: "BURNT", cellOf: ({ burntRunCount }) => burntRunCount, expendability: 2 },
  { heading: "LAST LEASE", cellOf: ({ lastLeaseAtMs }) => instant(lastLeaseAtMs), expendability: 3 },
  {
    heading: "LIVE",
    cellOf: ({ isLive }) => (isLive ? "live" : ""),
    styleOf: () => "green",
    expendability: 2,
  },
];

export function capacityCommand(): Command {
  return new Command("capacity")
    .summary("runs used and left, rates and forecasts, who takes them, alarms")
    .description(
      "Shows how much of a namespace's run space is used, how fast it goes, when it ends by that, who takes the runs and what becomes of " +
        "them, and what should be done before it hurts (docs/capacity.md).",
    )
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(namespaceOption())
    .action(async ({ json, namespace, ...asked }: Options) => {
      const capacity = await askCapacity(asked, namespace);
      if (json) return printJson(capacity);
      print(inWords(shownFields(capacity)));
      if (capacity.holders.length > 0) printHolders(capacity);
    });
}

/** @throws as `askCoordinator`. */
export function askCapacity(asked: Asked, namespace: string): Promise<CapacityAnswer> {
  return askCoordinator(asked, filledPath(OPERATOR_ROUTES.capacity, { namespace }), capacityAnswerSchema);
}

/** Their names; the figures and what to do stand under `capacity`. */
export function alarmsInALine(alarms: readonly Alarm[]): string {
  return alarms.length === 0 ? "none" : alarms.map(({ name, severity }) => `${name} (${severity})`).join(", ");
}

function inWords(capacity: CapacityAnswer): string {
  const { namespace, version, highWaterMark, runsUsed, runsLeft, usedShare, callNumbersLeft, alarms } = capacity;
  const { roomRuns, lineRunsPerSecond, lineEndsAtMs } = capacity;
  return [
    `namespace ${namespace}, version ${version}, high-water mark ${grouped(highWaterMark)}`,
    `  used               ${grouped(runsUsed)} runs, ${(usedShare * 100).toFixed(3)} %`,
    `  left               ${grouped(runsLeft)} runs, for ${grouped(callNumbersLeft)} call numbers`,
    `  room               ${grouped(roomRuns)} runs may be leased at once; the clock line rises by ${lineRunsPerSecond} a second`,
    `  the line ends      ${instant(lineEndsAtMs)}: no version is used up before`,
    ...capacity.rates.map(rateInWords),
    ...(alarms.length === 0 ? ["  alarms             none"] : alarms.flatMap(alarmInWords)),
  ].join("\n");
}

function alarmInWords({ name, severity, explanation }: Alarm): readonly string[] {
  return [`  ${severity.toUpperCase().padEnd(17)}  ${name}`, `      ${explanation}`];
}

function printHolders({ holders, lookedAt }: CapacityAnswer): void {
  const since = lookedAt.fromMs === null ? "" : ` since ${instant(lookedAt.fromMs)}`;
  print(`\nof the newest ${grouped(lookedAt.leaseCount)} leases${since}`);
  printPainted(terminalTable(HOLDER_COLUMNS).linesOf(holders.slice(0, HOLDERS_SHOWN)).join("\n"));
  const more = holders.length - HOLDERS_SHOWN;
  if (more > 0) print(`and ${grouped(more)} more: --json has all`);
}

function hostsInWords({ hosts }: HolderUse): string {
  const [first = ""] = hosts;
  return hosts.length > 1 ? `${nameCell(first)} +${hosts.length - 1}` : nameCell(first);
}
