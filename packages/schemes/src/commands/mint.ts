/** `schemes mint`: makes numbers of any scheme but the call number, with this machine's clock and randomness. */
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import { Command, Option } from "commander";
import { type MintContext, type Minted, SCHEMES, type Scheme } from "../index.js";
import { spanInWords } from "./figures.js";
import type { RunningCall, SchemesIo } from "./io.js";
import { machineContext, type NodeOptions, needsState } from "./machine-context.js";
import { oneOf, quickOption, wholeNumberIn } from "./options.js";
import { valuesAsJson } from "./parsed-words.js";
import { openStateFile, type StateFile } from "./state-file.js";

interface Options extends NodeOptions {
  readonly scheme: Scheme;
  readonly count: number;
  readonly state?: string;
  readonly create?: boolean;
  readonly json?: boolean;
}

const COUNT_MAX = 1_000_000_000;
const MAC = /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i;
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export function mintCommand(io: SchemesIo): Command {
  return new Command("mint")
    .summary("make numbers of any scheme but the call number, one a line")
    .description(
      "Makes numbers of a scheme with this machine's clock, its randomness, process id and MAC addresses, and waits where the scheme waits. " +
        "What the machine can't know, it must be told. Two processes that are told the same --node can make the same numbers: --state keeps " +
        "them apart on one machine. Call numbers it does not make: they come from leased runs (callnumber next).",
    )
    .addOption(
      quickOption(
        "--scheme <name>",
        "callnumber schemes list has them",
        oneOf("scheme", SCHEMES),
      ).makeOptionMandatory(),
    )
    .addOption(quickOption("-n, --count <count>", "how many", wholeNumberIn(1, COUNT_MAX)).default(1))
    .addOption(quickOption("--node <n>", "the number of this node; no other may have it", wholeNumberIn(0, 2 ** 32)))
    .addOption(
      quickOption("--server <n>", "the number of this server; no other may have it", wholeNumberIn(0, 2 ** 32)),
    )
    .addOption(quickOption("--mac <addresses...>", "MAC addresses in place of the machine's own", addMac))
    .addOption(
      quickOption(
        "--state <file>",
        "what is remembered from one call to the next: last sequences, the counter of tickets, the last time",
        (path) => path,
      ),
    )
    .addOption(new Option("--create", "make the state file when it is not there: numbers begin anew"))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes mint --scheme uuid -n 3\n" +
        "  $ callnumber schemes mint --scheme twitter-snowflake --node 7 -n 5000 > numbers.txt\n" +
        "  $ callnumber schemes mint --scheme tickets --server 1 --state tickets.json --create",
    )
    .action(async ({ scheme, count, state: path, create = false, json = false, ...node }: Options) => {
      mustBeMintable(scheme);
      if (path === undefined && create)
        throw new TypeError("--create is about a state file: name it with --state FILE");
      if (path === undefined) mustNeedNoState(scheme);
      // What can be refused is refused before a file is made.
      machineContext(scheme, node, undefined);
      endOnSignals(io.call);
      const state = path === undefined ? undefined : openStateFile(path, { create, files: io.files });
      io.call.onEnd(() => state?.close());
      await mintAndPrint({ scheme, node, count, state, json }, io);
    });
}

interface Order {
  readonly scheme: Scheme;
  readonly node: NodeOptions;
  readonly count: number;
  readonly state: StateFile | undefined;
  readonly json: boolean;
}

function mintAndPrint({ scheme, node, count, state, json }: Order, { call, printError }: SchemesIo): Promise<void> {
  const asText = json
    ? ({ text, values }: MintedNumber) => JSON.stringify({ text, fields: valuesAsJson(values) })
    : textOf;
  return mintNumbers({
    scheme,
    context: machineContext(scheme, node, state),
    count,
    keep: () => state?.save(),
    handOver: (numbers) => call.write(`${numbers.map(asText).join("\n")}\n`),
    onLongWait: (waitMs) =>
      printError(`callnumber: ${scheme.name} waits for its clock: ${spanInWords(waitMs / 1_000)}`),
  });
}

function textOf({ text }: MintedNumber): string {
  return text;
}

/** A run that nobody leased would make numbers that a coordinator gives to somebody else. */
function mustBeMintable({ name, fields }: Scheme): void {
  if (!fields.some(({ source }) => source.kind === "counter" && source.asked === "for each run")) return;
  throw new TypeError(
    `a ${name.replaceAll("-", " ")} comes from a run that a coordinator has leased to somebody: callnumber next makes some. ` +
      "Minted without a lease they would be the numbers of another message",
  );
}

function mustNeedNoState(scheme: Scheme): void {
  if (!needsState(scheme)) return;
  throw new TypeError(
    `${scheme.name} counts, and must remember how far: --state FILE, and --create the first time. Without it every call would make the same numbers`,
  );
}

/** The lock of a state file goes when the command ends, and a signal by itself would not let it. */
function endOnSignals(call: RunningCall): void {
  for (const [signal, exitCode] of Object.entries(EXIT_CODES)) call.onSignal(signal, () => call.leave(exitCode));
}

/** @throws RangeError */
function addMac(text: string, before: readonly string[] = []): readonly string[] {
  const macs = text.split(",").filter((mac) => mac !== "");
  const wrong = macs.find((mac) => !MAC.test(mac));
  if (wrong !== undefined || macs.length === 0) throw new RangeError("must be as de:ad:be:ef:00:01");
  return [...before, ...macs.map((mac) => mac.replaceAll("-", ":").toLowerCase())];
}

export type MintedNumber = Extract<Minted, { readonly outcome: "minted" }>;

export interface Minting {
  readonly scheme: Scheme;
  readonly context: MintContext;
  readonly count: number;
  /** Puts on the disk what the numbers since the last call have changed. */
  readonly keep: () => void;
  readonly handOver: (numbers: readonly MintedNumber[]) => Promise<void>;
  /** Told when a wait is long enough to be wondered at. */
  readonly onLongWait: (waitMs: number) => void;
}

/** As many are kept by one writing. */
const BATCH = 1_000;
const LONG_WAIT_MS = 3_000;
/** A clock that is set during a wait is seen after so long. */
const DELAY_MS_MAX = 1_000;

/**
 * Mints number after number: waits where the scheme says so, and keeps what must be kept before a number is out.
 * @throws SchemeError `clock_went_back` or `space_used_up`, when all that was minted before is handed over.
 */
export async function mintNumbers({ scheme, context, count, keep, handOver, onLongWait }: Minting): Promise<void> {
  let batch: MintedNumber[] = [];
  const finishBatch = async (): Promise<void> => {
    if (batch.length === 0) return;
    keep();
    const kept = batch;
    batch = [];
    await handOver(kept);
  };
  let isWaiting = false;
  for (let left = count; left > 0; ) {
    const step = await orFinish(() => scheme.mint(context), finishBatch);
    if (step.outcome === "minted") {
      isWaiting = false;
      left--;
      batch.push(step);
      if (batch.length < BATCH) continue;
      await finishBatch();
      // Signals and readers that leave are heard between batches.
      await turn();
      continue;
    }
    await finishBatch();
    const waitMs = Math.max(step.untilMs - context.clock.nowMs(), 1);
    if (!isWaiting && waitMs >= LONG_WAIT_MS) onLongWait(waitMs);
    isWaiting = true;
    await delay(Math.min(waitMs, DELAY_MS_MAX));
  }
  await finishBatch();
}

async function orFinish<T>(act: () => T, finish: () => Promise<void>): Promise<T> {
  try {
    return act();
  } catch (error) {
    await finish();
    throw error;
  }
}
