/** `schemes generate`: generates numbers of any scheme but the call number, with this machine's clock and random numbers. */
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { Command, Option } from "commander";
import { fieldsOfKind } from "../fields.js";
import type { GenerateContext, Generated, GenerateStep, Scheme } from "../scheme.js";
import { valuesAsJson } from "./format.js";
import type { SchemesIo } from "./io.js";
import { machineContext, type NodeOptions, nodeIdentity } from "./machine.js";
import { epochOption, integerBetween, oneScheme, withEpoch } from "./options.js";
import { openStateFile } from "./state-file.js";

interface Options extends NodeOptions {
  readonly scheme: Scheme;
  readonly epoch?: number;
  readonly count: number;
  readonly state?: string;
  readonly create?: boolean;
  readonly json?: boolean;
}

const COUNT_MAX = 1_000_000_000;
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export function generateCommand(io: SchemesIo): Command {
  return new Command("generate")
    .summary("Generate numbers of a scheme other than the call number")
    .description(
      "Generates numbers of a scheme with this machine's clock, random numbers, process id and MAC addresses, and waits where the scheme waits. " +
        "What the machine does not know, you must state. Two processes with the same --node can generate the same numbers: --state keeps them " +
        "apart on one machine. Call numbers come from leased runs: use callnumber next for them.",
    )
    .requiredOption("--scheme <name>", "callnumber schemes list has them", oneScheme)
    .option("-n, --count <count>", "numbers to generate", integerBetween(1, COUNT_MAX), 1)
    .addOption(epochOption())
    .option("--node <n>", "the number of this node; no other may have it", integerBetween(0, 2 ** 32))
    .option("--server <n>", "the number of this server; no other may have it", integerBetween(0, 2 ** 32))
    .addOption(
      stateOption(
        "--state <file>",
        "what is remembered from one call to the next: last sequences, the counter of tickets, the last time",
      ),
    )
    .addOption(stateOption("--create", "create the state file if it is missing: numbers start at the first"))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes generate --scheme uuid -n 3\n" +
        "  $ callnumber schemes generate --scheme twitter-snowflake --node 7 > list.txt\n" +
        "  $ callnumber schemes generate --scheme tickets --server 1 \\\n      --state tickets.json --create",
    )
    .action((options: Options) => generateAndPrint(options, io));
}

function stateOption(flags: string, description: string): Option {
  return new Option(flags, description).helpGroup("State options:");
}

async function generateAndPrint(options: Options, { call }: SchemesIo): Promise<void> {
  const { epoch, count, state, create = false, json } = options;
  assertGeneratable(options.scheme);
  const scheme = withEpoch(options.scheme, epoch);
  if (state === undefined && create) throw new TypeError("--create needs a state file: pass --state FILE");
  if (state === undefined && needsState(scheme)) {
    throw new TypeError(
      `${scheme.name} counts, and must remember its last number: pass --state FILE, and --create the first time. Without it every call ` +
        "would generate the same numbers",
    );
  }
  // What can be rejected is rejected before a file is created.
  const node = nodeIdentity(scheme, options);
  // The lock of a state file is removed when the command ends, but not when a signal kills it.
  for (const [signal, exitCode] of Object.entries(EXIT_CODES)) call.onSignal(signal, () => call.leave(exitCode));
  const stateFile = state === undefined ? undefined : openStateFile(state, create);
  call.onEnd(() => stateFile?.close());
  const context = machineContext(scheme, node, (kind) => stateFile?.memory(kind) ?? new Map<string, bigint>());
  for await (const batch of generateBatches(scheme, context, count)) {
    stateFile?.save();
    const lines = batch.map(({ text, values }) =>
      json ? JSON.stringify({ text, fields: valuesAsJson(values) }) : text,
    );
    await call.write(`${lines.join("\n")}\n`);
  }
}

/** A run that was not leased would generate numbers that a coordinator leases to another holder; a digest needs the content. */
function assertGeneratable({ name, fields, facts }: Scheme): void {
  if (fieldsOfKind(fields, "digest").length > 0) {
    throw new TypeError(
      `a ${name} comes from the content. For each file: sha256sum FILE | cut -c -${facts.characters}`,
    );
  }
  if (!fieldsOfKind(fields, "counter").some(({ source }) => source.asked === "for each run")) return;
  throw new TypeError(
    `a ${name.replaceAll("-", " ")} comes from a run that a coordinator has leased: callnumber next makes some. ` +
      "Generated without a lease they would be the numbers of other messages",
  );
}

/** Whether generating needs what outlives the process. */
function needsState({ fields }: Scheme): boolean {
  const isKept = fieldsOfKind(fields, "sequence").some(({ source }) => source.within === "kept");
  return isKept || fieldsOfKind(fields, "counter").length > 0;
}

/** So many numbers are saved by one write. */
const BATCH = 1_000;
/** No scheme waits longer: only a clock that is set back during a wait would make one. */
const DELAY_MS_MAX = 1_000;

/**
 * Generates number after number, and waits where the scheme waits. The caller must save the state before it writes a batch.
 * @throws SchemeError `clock_moved_backward` or `number_space_exhausted`, after a batch of all that was generated before.
 */
export async function* generateBatches(
  scheme: Scheme,
  context: GenerateContext,
  count: number,
): AsyncGenerator<readonly Generated[]> {
  let batch: Generated[] = [];
  for (let left = count; left > 0; ) {
    let step: GenerateStep;
    try {
      step = scheme.generate(context);
    } catch (error) {
      if (batch.length > 0) yield batch;
      throw error;
    }
    if (step.outcome === "generated") {
      batch.push(step);
      left--;
    }
    if (batch.length === BATCH || (batch.length > 0 && (left === 0 || step.outcome === "wait"))) {
      yield batch;
      batch = [];
      // Signals and readers that leave are handled between batches.
      await nextTurn();
    }
    if (step.outcome === "wait") {
      const waitMs = Math.max(step.untilMs - context.clock.nowMs(), 1);
      await delay(Math.min(waitMs, DELAY_MS_MAX));
    }
  }
}
