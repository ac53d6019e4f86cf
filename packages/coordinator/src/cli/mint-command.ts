/** `mint`: makes numbers of any scheme but the call number, with this machine's clock and randomness. */
import { SCHEMES, type Scheme } from "@callnumber/schemes";
import { Command, Option } from "commander";
import { running } from "./command-io.js";
import { spanInWords } from "./figures.js";
import { quickOption, wholeNumberIn } from "./quick-option.js";
import { machineContext, type NodeOptions, needsState } from "./schemes/machine-context.js";
import { type MintedNumber, mintNumbers } from "./schemes/mint-numbers.js";
import { valuesAsJson } from "./schemes/parsed-words.js";
import { schemeOf } from "./schemes/scheme-choice.js";
import { openStateFile, type StateFile } from "./schemes/state-file.js";

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

export function mintCommand(): Command {
  return new Command("mint")
    .summary("makes numbers of any other scheme, one a line (offline)")
    .description(
      "Makes numbers of a scheme with this machine's clock, its randomness, process id and MAC addresses, and waits where the scheme waits. " +
        "What the machine can't know, it must be told. Two processes that are told the same --node can make the same numbers: --state keeps " +
        "them apart on one machine. Call numbers it does not make: they come from leased runs (callnumber next).",
    )
    .addOption(
      quickOption("--scheme <name>", "callnumber schemes lists them", (name) =>
        schemeOf(name, SCHEMES),
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
      "\nExamples:\n  $ callnumber mint --scheme uuid -n 3\n  $ callnumber mint --scheme twitter-snowflake --node 7 -n 5000 > numbers.txt\n" +
        "  $ callnumber mint --scheme tickets --server 1 --state tickets.json --create",
    )
    .action(async ({ scheme, count, state: path, create = false, json = false, ...node }: Options) => {
      mustBeMintable(scheme);
      if (path === undefined && create)
        throw new TypeError("--create is about a state file: name it with --state FILE");
      if (path === undefined) mustNeedNoState(scheme);
      // What can be refused is refused before a file is made.
      machineContext(scheme, node, undefined);
      endOnSignals();
      const state = path === undefined ? undefined : openStateFile(path, { create });
      running().onEnd(() => state?.close());
      await mintAndPrint(scheme, node, count, state, json);
    });
}

function mintAndPrint(
  scheme: Scheme,
  node: NodeOptions,
  count: number,
  state: StateFile | undefined,
  json: boolean,
): Promise<void> {
  const command = running();
  const asText = json
    ? ({ text, values }: MintedNumber) => JSON.stringify({ text, fields: valuesAsJson(values) })
    : textOf;
  return mintNumbers({
    scheme,
    context: machineContext(scheme, node, state),
    count,
    keep: () => state?.save(),
    handOver: (numbers) => command.write(`${numbers.map(asText).join("\n")}\n`),
    onLongWait: (waitMs) =>
      command.io.stderr.write(`callnumber: ${scheme.name} waits for its clock: ${spanInWords(waitMs / 1_000)}\n`),
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
function endOnSignals(): void {
  const command = running();
  for (const [signal, exitCode] of Object.entries(EXIT_CODES)) command.onSignal(signal, () => command.leave(exitCode));
}

/** @throws RangeError */
function addMac(text: string, before: readonly string[] = []): readonly string[] {
  const macs = text.split(",").filter((mac) => mac !== "");
  const wrong = macs.find((mac) => !MAC.test(mac));
  if (wrong !== undefined || macs.length === 0) throw new RangeError("must be as de:ad:be:ef:00:01");
  return [...before, ...macs.map((mac) => mac.replaceAll("-", ":").toLowerCase())];
}
