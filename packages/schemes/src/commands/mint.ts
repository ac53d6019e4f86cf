/** `schemes mint`: makes numbers of any scheme but the call number, with this machine's clock and random numbers. */
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { Command, Option } from "commander";
import { type MintContext, type Minted, SCHEMES, type Scheme } from "../index.js";
import { formatSpan, valuesAsJson } from "./format.js";
import type { SchemesIo } from "./io.js";
import { machineContext, type NodeOptions, needsState } from "./machine.js";
import { integerBetween, oneOf, parsedOption } from "./options.js";
import { openStateFile } from "./state-file.js";

interface Options extends NodeOptions {
  readonly scheme: Scheme;
  readonly count: number;
  readonly state?: string;
  readonly create?: boolean;
  readonly json?: boolean;
}

const COUNT_MAX = 1_000_000_000;
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export function mintCommand(io: SchemesIo): Command {
  return new Command("mint")
    .summary("make numbers of any scheme but the call number, one a line")
    .description(
      "Makes numbers of a scheme with this machine's clock, random numbers, process id and MAC addresses, and waits where the scheme waits. " +
        "What the machine does not know, you must state. Two processes with the same --node can make the same numbers: --state keeps them " +
        "apart on one machine. Call numbers come from leased runs: use callnumber next for them.",
    )
    .addOption(
      parsedOption(
        "--scheme <name>",
        "callnumber schemes list has them",
        oneOf("scheme", SCHEMES),
      ).makeOptionMandatory(),
    )
    .addOption(parsedOption("-n, --count <count>", "how many", integerBetween(1, COUNT_MAX)).default(1))
    .addOption(parsedOption("--node <n>", "the number of this node; no other may have it", integerBetween(0, 2 ** 32)))
    .addOption(
      parsedOption("--server <n>", "the number of this server; no other may have it", integerBetween(0, 2 ** 32)),
    )
    .addOption(
      new Option(
        "--state <file>",
        "what is remembered from one call to the next: last sequences, the counter of tickets, the last time",
      ),
    )
    .addOption(new Option("--create", "create the state file if it is missing: numbers start at the first"))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes mint --scheme uuid -n 3\n" +
        "  $ callnumber schemes mint --scheme twitter-snowflake --node 7 -n 5000 > numbers.txt\n" +
        "  $ callnumber schemes mint --scheme tickets --server 1 --state tickets.json --create",
    )
    .action((options: Options) => mintAndPrint(options, io));
}

async function mintAndPrint(
  { scheme, count, state, create = false, json, ...node }: Options,
  io: SchemesIo,
): Promise<void> {
  const { call, printError } = io;
  assertMintable(scheme);
  if (state === undefined && create) throw new TypeError("--create needs a state file: pass --state FILE");
  if (state === undefined && needsState(scheme)) {
    throw new TypeError(
      `${scheme.name} counts, and must remember its last number: pass --state FILE, and --create the first time. Without it every call ` +
        "would make the same numbers",
    );
  }
  // What can be refused is refused before a file is created.
  machineContext(scheme, node, undefined);
  // The lock of a state file is removed when the command ends, but not when a signal kills it.
  for (const [signal, exitCode] of Object.entries(EXIT_CODES)) call.onSignal(signal, () => call.leave(exitCode));
  const stateFile = state === undefined ? undefined : openStateFile(state, { create });
  call.onEnd(() => stateFile?.close());
  const lineOf = ({ text, values }: Minted): string =>
    json ? JSON.stringify({ text, fields: valuesAsJson(values) }) : text;
  await mintNumbers({
    scheme,
    context: machineContext(scheme, node, stateFile),
    count,
    save: () => stateFile?.save(),
    write: (numbers) => call.write(`${numbers.map(lineOf).join("\n")}\n`),
    onLongWait: (waitMs) => printError(`callnumber: ${scheme.name} waits for its clock: ${formatSpan(waitMs / 1_000)}`),
  });
}

/** A run that was not leased would make numbers that a coordinator leases to another holder. */
function assertMintable({ name, fields }: Scheme): void {
  if (!fields.some(({ source }) => source.kind === "counter" && source.asked === "for each run")) return;
  throw new TypeError(
    `a ${name.replaceAll("-", " ")} comes from a run that a coordinator has leased: callnumber next makes some. ` +
      "Minted without a lease they would be the numbers of other messages",
  );
}

export interface Minting {
  readonly scheme: Scheme;
  readonly context: MintContext;
  readonly count: number;
  /** Writes to the disk what the numbers since the last call have changed. */
  readonly save: () => void;
  readonly write: (numbers: readonly Minted[]) => Promise<void>;
  /** Called once for a wait that a user would notice. */
  readonly onLongWait: (waitMs: number) => void;
}

/** So many numbers are saved by one write. */
const BATCH = 1_000;
const LONG_WAIT_MS = 3_000;
/** A clock that is set during a wait is noticed after so long. */
const DELAY_MS_MAX = 1_000;

/**
 * Mints number after number: waits where the scheme waits, and saves the state before a number is written.
 * @throws SchemeError `clock_moved_backward` or `number_space_exhausted`, after all that was minted before is written.
 */
export async function mintNumbers({ scheme, context, count, save, write, onLongWait }: Minting): Promise<void> {
  let batch: Minted[] = [];
  const finishBatch = async (): Promise<void> => {
    if (batch.length === 0) return;
    save();
    const saved = batch;
    batch = [];
    await write(saved);
  };
  let isWaiting = false;
  try {
    for (let left = count; left > 0; ) {
      const step = scheme.mint(context);
      if (step.outcome === "minted") {
        isWaiting = false;
        left--;
        batch.push(step);
        if (batch.length < BATCH) continue;
        await finishBatch();
        // Signals and readers that leave are handled between batches.
        await nextTurn();
        continue;
      }
      await finishBatch();
      const waitMs = Math.max(step.untilMs - context.clock.nowMs(), 1);
      if (!isWaiting && waitMs >= LONG_WAIT_MS) onLongWait(waitMs);
      isWaiting = true;
      await delay(Math.min(waitMs, DELAY_MS_MAX));
    }
  } finally {
    await finishBatch();
  }
}
