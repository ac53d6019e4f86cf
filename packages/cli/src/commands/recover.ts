/** `recover`: prints what it finds, what it would set and what that costs. With --apply it does it. */

import { createReadStream } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import {
  checkpointFields,
  IF_NODES_ARE_GONE,
  NO_CHECKPOINT_FILE,
  storeIdFields,
} from "@callnumber/coordinator/internal";
import { escapeForTerminal } from "@callnumber/coordinator/internal/text";
import {
  checkpointsOf,
  describeStore,
  type Floor,
  HEARTBEAT_EVERY_MS,
  openStore,
  planRecovery,
  type RecoverPlan,
  recoverNamespace,
  refusalOfRecovery,
  type Store,
  type StoreAddress,
  wayOfMoved,
} from "@callnumber/coordinator/operator";
import {
  type CommandOptions,
  ledgerIdOf,
  type NamedRun,
  nameOfLedgerId,
  runName,
  runOfLedgerId,
} from "@callnumber/protocol/api";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import { runNameSchema } from "@callnumber/protocol/schemas";
import { Command } from "commander";
import { inputLines, linesOf } from "../input.js";
import { invocation } from "../invocation.js";
import { checkedOption, namespaceOption, STORE_GROUP, switchOption } from "../options.js";
import { formatCount, formatRecord, formatWhere, print, printJson } from "../output.js";
import {
  addActingOptions,
  checkpointDirOption,
  commandAgain,
  confirmClockOption,
  ignoreFindingsOption,
  nodesOption,
  persistentAddress,
  type StoreNamespaceOptions,
} from "../store-options.js";

interface Options extends StoreNamespaceOptions {
  readonly storeId?: string;
  readonly minRun?: NamedRun;
  readonly numbers?: string;
  readonly nodes?: number;
  readonly ignoreFindings: readonly string[];
  readonly confirmClock?: boolean;
  readonly apply?: boolean;
}

/** A coordinator that still leases writes to the record in this time. */
const WATCH_MS = 2 * HEARTBEAT_EVERY_MS + 1_000;

export function makeCommand(): Command {
  const command = new Command("recover")
    .description(
      "Watches a namespace of a store for some seconds, and prints what it found, what recovering would set, and what that costs. Changes " +
        "nothing without --apply. The high-water mark moves to the run ceiling, above everything that was ever leased; the next coordinator then " +
        "claims the store and leases on. Coordinators of a server may run: those that serve other namespaces lease, and lease from this one " +
        "once it is recovered. Stop the coordinator of an embedded store first, and start it again afterwards.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber recover --store redis://127.0.0.1:6379\n  $ callnumber recover --store redis://127.0.0.1:6379 --apply" +
        "\n  $ callnumber recover --numbers numbers.txt",
    )
    .action(recover);
  const numbers = "call numbers of the archive, one per line (-: standard input), to recover above";
  return addActingOptions(command, [
    checkedOption("--store-id <id>", "id of the lost store (default: that of the record or the checkpoint)"),
    checkedOption("--min-run <run>", "a run that is known to be leased, such as 1/65556 (version/run)", runNameSchema),
    checkedOption("--numbers <file>", numbers),
    nodesOption(`data nodes (default: as recorded); fewer ${IF_NODES_ARE_GONE}`),
    ignoreFindingsOption(),
    confirmClockOption(),
    switchOption("apply", "recover the namespace"),
    namespaceOption(STORE_GROUP),
    checkpointDirOption(),
  ]);
}

async function recover(options: Options, command: Command): Promise<void> {
  const { namespace, storeId, minRun, numbers, nodes, ignoreFindings, checkpointDir, confirmClock = false } = options;
  const { apply, json } = options;
  const { stderr } = invocation().io;
  const printProgress = (text: string) => void (json || stderr.write(`${text}\n`));
  const address = persistentAddress(options.store, "there is nothing to recover");
  if (numbers !== undefined) printProgress("Reading the call numbers …");
  const list = numbers === undefined ? undefined : await readCallNumberList(numbers);
  const { store, isMissing } = await openedOrEmpty(address);
  const checkpointFile = checkpointsOf(address, checkpointDir).checkpointFileOf(namespace);
  let created: Store | undefined;
  const request = {
    store,
    namespace,
    checkpointFile,
    storeId,
    floors: list === undefined ? [] : [floorOf(list)],
    minRun,
    nodeCount: nodes,
    overrides: ignoreFindings,
    isClockChecked: confirmClock,
    // No other process can have an embedded store open.
    watchMs: address.kind === "sqlite" ? 0 : WATCH_MS,
    pause: async (pauseMs: number) => void (await delay(pauseMs)),
    again: (more: CommandOptions) => commandAgain(command, "recover", more),
  };
  try {
    if (isMissing) printProgress(missingText(address));
    const planned = async (changed: { readonly store?: Store; readonly watchMs?: number }) => {
      const { watchMs } = { ...request, ...changed };
      if (watchMs > 0) printProgress(`Watching for ${watchMs / 1000} s whether a coordinator still leases …`);
      return await planRecovery({ ...request, ...changed });
    };
    let plan = await planned(isMissing ? { watchMs: 0 } : {});
    const where = describeStore(address);
    if (!apply) {
      const shown = formatPlan(plan, where, list);
      if (json) printJson({ store: where, ...planAsJson(plan, list) });
      else print(shown);
      const refusal = refusalOfRecovery(plan);
      if (refusal !== undefined) throw refusal;
      if (!json) print(`Nothing was changed. To do it:\n  ${plan.again({ apply: true })}`);
      return;
    }
    if (isMissing) {
      // Fails here, before an empty store is created. The store in its place has no other nodes: the new one is asked for them.
      await recoverNamespace({ ...request, checkpointFile: NO_CHECKPOINT_FILE }, { ...plan, nodeCount: 1 });
      created = (await openStore(address, { create: true })).store;
      // What was not missing is kept: the record may be there, with its nodes and a coordinator that leases.
      plan = await planned({ store: created });
    }
    const { after, movedAside = [] } = await recoverNamespace({ ...request, store: created ?? store }, plan);
    const { version, highWaterMark, generation } = after;
    if (json)
      return printJson({
        store: where,
        storeId: plan.storeId,
        recovered: namespace,
        version,
        highWaterMark,
        generation,
        movedAside,
      });
    print(formatPlan(plan, where, list));
    for (const key of movedAside) print(`Another program's key was in the way. It is now called ${key}`);
    const moved = wayOfMoved(plan);
    if (moved !== undefined) return print(`Done. The store stays as it was: ${moved}`);
    print(
      `Done: the high-water mark is run ${runName(version, highWaterMark)}. ` +
        `${(created ?? store).isExclusive ? "Start the coordinator: it" : "A coordinator that runs, or is started,"} claims the store, and leases about ` +
        `${seconds(plan.nextRunInMs)} s later.`,
    );
  } finally {
    checkpointFile.close();
    await store.close();
    await created?.close();
  }
}

/** Opens an empty store in memory to plan with, where there is no embedded store. */
async function openedOrEmpty(address: StoreAddress): Promise<{ readonly store: Store; readonly isMissing: boolean }> {
  let isMissing = false;
  const mustNotBeLost = () => {
    isMissing = true;
  };
  try {
    return { ...(await openStore(address, { create: false, acceptCopy: true, mustNotBeLost })), isMissing };
  } catch (error) {
    if (!isMissing) throw error;
    return { ...(await openStore({ kind: "memory" }, { create: true })), isMissing };
  }
}

function missingText(address: StoreAddress): string {
  const where = describeStore(address);
  if (address.kind !== "postgres") return `There is no store at ${where}; --apply makes one.`;
  return `Tables are missing at ${where}; --apply makes them, and plans again with what is there.`;
}

const PHASES: Readonly<Record<number, string>> = { 0: "open", 1: "claimed, not confirmed", 2: "sealed" };

const HEALTHY = [
  "nothing is wrong with the record: no recovery is needed, unless status shows manual_recovery_required. Start the",
  "coordinator: after a restart or a loss it recovers automatically",
];

/** Without a target that can't be set: the error gives the reason. */
function formatPlan(plan: RecoverPlan, store: string, list: CallNumberList | undefined): string {
  const { namespace, storeId, checkpoint, floors, version } = plan;
  return [
    formatWhere({ namespace, store, storeId }),
    "found",
    `  the record         ${formatFound(plan)}`,
    checkpoint === undefined
      ? "  the checkpoint     nothing is remembered on this machine"
      : `  the checkpoint     run ${nameOfLedgerId(checkpoint.ledgerId, version)}`,
    ...floors
      .filter(({ from }) => from === "--min-run")
      .map(({ ledgerId }) => `  --min-run          run ${nameOfLedgerId(ledgerId, version)}`),
    ...(list === undefined ? [] : [formatList(list, version)]),
    ...(refusalOfRecovery(plan) === undefined ? [...(plan.isHealthy ? HEALTHY : []), ...formatTarget(plan)] : []),
  ].join("\n");
}

function formatFound({ found, fault }: RecoverPlan): string {
  if (found !== undefined) return `${formatRecord(found)}, ${PHASES[found.phase] ?? "?"}`;
  if (fault === undefined || fault.code === "namespace_not_found") return "none: the store holds no such namespace";
  return `damaged: ${fault.fault ?? fault.message}`;
}

function formatTarget(plan: RecoverPlan): readonly string[] {
  const { version, target, skippedRunCount, nextRunInMs, nodeCount, nodeCountBefore, movedTo } = plan;
  const rate = formatCount(storeIdFields(plan.storeId).rate);
  if (movedTo !== undefined) return ["recovering makes the record readable. The store was moved, and leases nothing"];
  return [
    "recovering sets",
    `  high-water mark    run ${runName(version, target)}, the run ceiling: no run of this store above it was ever leased`,
    `  data nodes         ${nodeCount}`,
    "and costs",
    `  runs               ${formatCount(skippedRunCount)} are never leased`,
    `  time               the next run is free about ${seconds(nextRunInMs)} s later, then ${rate} a second for all importers together`,
    ...(nodeCount < nodeCountBefore
      ? [`  nodes              without the others of ${nodeCountBefore}: ${IF_NODES_ARE_GONE}`]
      : []),
  ];
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}

/** The key of the lease proofs is secret. */
function planAsJson(
  { found, fault, checkpoint, floors, again: _again, ...rest }: RecoverPlan,
  list: CallNumberList | undefined,
): object {
  const plan = {
    ...rest,
    ...(checkpoint && { checkpoint: checkpointFields(checkpoint) }),
    floors: floors.map(({ from, ledgerId }) => ({ from, ...runOfLedgerId(ledgerId) })),
    ...(list && { numbers: listAsJson(list) }),
  };
  if (found === undefined) return { ...plan, found: null, fault: fault?.code ?? null };
  const { proofKey: _, ...record } = found;
  return { ...plan, found: record, fault: null };
}

/** A list that was read to its end. */
export interface CallNumberList {
  /** Its path, or "standard input". */
  readonly name: string;
  readonly callNumberCount: number;
  /** The first call number of the greatest run. */
  readonly greatest: ListedNumber;
}

interface ListedNumber {
  readonly ledgerId: number;
  readonly callNumber: string;
  /** Counted from 1. */
  readonly line: number;
}

const STANDARD_INPUT = "-";

/**
 * Reads the whole list in constant memory. Blank lines and white space around a call number are ignored.
 * @throws Error `numbers_invalid` when the list can't be read, is empty, or at the first line that is not a call number.
 */
export async function readCallNumberList(file: string): Promise<CallNumberList> {
  const name = file === STANDARD_INPUT ? "standard input" : escapeForTerminal(file);
  const lines = file === STANDARD_INPUT ? inputLines() : linesOf(createReadStream(file, "utf8"), name);
  try {
    return await listIn(lines, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    const reason = escapeForTerminal((error as Error).message);
    throw invalid(`can't read the list of call numbers: ${reason}. Correct --numbers`, error);
  }
}

async function listIn(lines: AsyncIterable<string>, name: string): Promise<CallNumberList> {
  let line = 0;
  let callNumberCount = 0;
  let greatest: ListedNumber | undefined;
  for await (const text of lines) {
    line++;
    const callNumber = text.trim();
    if (callNumber === "") continue;
    const ledgerId = ledgerIdIn(callNumber, line, name);
    callNumberCount++;
    if (greatest === undefined || ledgerId > greatest.ledgerId) greatest = { ledgerId, callNumber, line };
  }
  // The program that made the list may have failed.
  if (greatest === undefined) throw invalid(`${name} has no call number. If the archive is empty, omit --numbers`);
  return { name, callNumberCount, greatest };
}

function ledgerIdIn(callNumber: string, line: number, name: string): number {
  try {
    const { version, run } = decodeCallNumber(callNumber);
    return ledgerIdOf(version, run);
  } catch (error) {
    if (!(error instanceof CallNumberError)) throw error;
    // It may be the number of the greatest run, damaged.
    throw invalid(
      `line ${line} of ${name} is not a call number: ${error.message}. Nothing was changed. Correct the list`,
    );
  }
}

function invalid(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code: "numbers_invalid" });
}

export function floorOf({ name, greatest: { ledgerId, callNumber, line } }: CallNumberList): Floor {
  return { from: `call number ${callNumber} (line ${line} of ${name})`, ledgerId };
}

export function listAsJson({ greatest: { ledgerId, ...greatest }, ...list }: CallNumberList): object {
  return { ...list, greatest: { ...greatest, ...runOfLedgerId(ledgerId) } };
}

export function formatList({ name, callNumberCount, greatest }: CallNumberList, currentVersion: number): string {
  const { ledgerId, callNumber, line } = greatest;
  const count = callNumberCount === 1 ? "1 call number" : `${formatCount(callNumberCount)} call numbers`;
  const run = nameOfLedgerId(ledgerId, currentVersion);
  return `  --numbers          greatest run ${run} (${callNumber}, line ${formatCount(line)}) of ${count} in ${name}`;
}
