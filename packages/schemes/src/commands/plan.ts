/** `schemes plan`: how many characters so many messages need, how to split their bits, and what the call number gives. */
import { CALL_NUMBER_LENGTH, RUN_BITS, RUN_COUNT, SEQUENCE_BITS, VERSION_BITS } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { chanceOfRepeat } from "../birthday.js";
import { formatChance, formatCount, formatRate, formatSpan, grouped, lineWidth, wrapped, YEAR_S } from "./format.js";
import type { Column, SchemesIo } from "./io.js";
import { type Count, integerBetween, parseCount } from "./options.js";

interface Options {
  readonly messages: Count;
  readonly years: number;
  readonly processes: number;
  readonly characters: number;
  readonly json?: boolean;
}

export interface Load {
  readonly messages: number;
  readonly years: number;
  readonly processes: number;
}

const LENGTHS = [4, 5, 6, 7, 8, 9, 10] as const;
/** Of ten characters, grouped. */
const NUMBERS_WIDTH = 23;
const SEQUENCE_WIDTHS = [8, 10, 12, 14, 16, 18, 20] as const;
const DAYS_A_YEAR = 365.2425;
/** Runs a second by which the run ceiling rises: `init --rate`. */
const RATE_DEFAULT = 2;
const RATE_MAX = 16;

export function planCommand(io: SchemesIo): Command {
  return new Command("plan")
    .summary("Plan the length and the fields of message numbers")
    .description(
      "Shows how many messages numbers of 4 to 10 base62 characters are enough for, the splits of their bits into version, run and " +
        "sequence, how long each lasts and what fails first, and what the call number gives. Messages come evenly, and each process starts " +
        "once a day: a start leaves the rest of a run unused.",
    )
    .requiredOption("--messages <n>", "how many come in these years: 1e9, 10^9, 250,000,000", parseCount)
    .option("--years <n>", "in how many years they come", integerBetween(1, 10_000), 20)
    .option("--processes <n>", "processes that number messages", integerBetween(1, 1e9), 10)
    .option("--characters <n>", "show the splits for this length", integerBetween(4, 10), CALL_NUMBER_LENGTH)
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes plan --messages 1e9 --years 20\n  $ callnumber schemes plan --messages 1e12 --processes 200 --characters 7",
    )
    .action(({ messages, years, processes, characters, json }: Options) => {
      const load = { messages: Number(messages.count), years, processes };
      const [lengths, splits] = [LENGTHS.map((length) => planLength(length, load)), planSplits(characters, load)];
      const callNumber = planSplit(RUN_BITS, SEQUENCE_BITS, load);
      if (!json) return printPlan({ lengths, splits, callNumber }, load, characters, io);
      const written = lengths.map((length) => Object.assign({}, length, { numbers: String(length.numbers) }));
      io.printJson({ ...load, characters, lengths: written, splits, callNumber });
    });
}

/** `bits` that every text of so many characters has room for; `years` until its `numbers` are used up, one after the other. */
export function planLength(characters: number, { messages, years }: Load) {
  const bits = Math.floor(characters * Math.log2(62));
  const numbers = 62n ** BigInt(characters);
  const repeatChance = chanceOfRepeat(Number(numbers), messages);
  return { characters, bits, numbers, years: (Number(numbers) / messages) * years, repeatChance };
}

/** A version as wide as that of the call number: less would leave no way out of a used-up numbering. */
export function planSplits(characters: number, load: Load): readonly Split[] {
  const bits = planLength(characters, load).bits - VERSION_BITS;
  return SEQUENCE_WIDTHS.filter((width) => width < bits).map((width) => planSplit(bits - width, width, load));
}

export function planSplit(run: number, sequence: number, { messages, years, processes }: Load) {
  const byMessages = messages / years / 2 ** sequence;
  const byStarts = processes * DAYS_A_YEAR;
  const runsPerYear = byMessages + byStarts;
  const lastsYears = 2 ** (VERSION_BITS + run) / runsPerYear;
  const cause = byStarts > byMessages ? "runs, by starts" : "runs, by messages";
  const runSeconds = (2 ** sequence * processes * years * YEAR_S) / messages;
  const failsFirst = lastsYears < years ? cause : null;
  return { version: VERSION_BITS, run, sequence, runsPerYear, runSeconds, lastsYears, failsFirst };
}

type Split = ReturnType<typeof planSplit>;

interface Plan {
  readonly lengths: readonly ReturnType<typeof planLength>[];
  readonly splits: readonly Split[];
  readonly callNumber: Split;
}

function printPlan({ lengths, splits, callNumber }: Plan, load: Load, characters: number, io: SchemesIo): void {
  const { messages, years, processes } = load;
  const span = (inYears: number) => formatSpan(inYears * YEAR_S);
  const isCallNumber = ({ run, sequence }: Split) => run === RUN_BITS && sequence === SEQUENCE_BITS;
  const lengthColumns: readonly Column<Plan["lengths"][number]>[] = [
    column("CHARS", (row) => row.characters),
    column("BITS", (row) => row.bits),
    column("NUMBERS".padStart(NUMBERS_WIDTH), (row) => grouped(row.numbers).padStart(NUMBERS_WIDTH)),
    column("COUNTED, LASTS", (row) => span(row.years)),
    column("DRAWN, A REPEAT", (row) => formatChance(row.repeatChance)),
  ];
  io.printPainted(`${io.paint("bold", `${formatCount(messages)} messages in ${span(years)}`)}\n`);
  io.printPainted(`${io.table(lengthColumns, lengths)}\n`);
  const splitColumns: readonly Column<Split>[] = [
    column("VERSION", (row) => row.version),
    column("RUN", (row) => row.run),
    column("SEQUENCE", (row) => `${row.sequence}${isCallNumber(row) ? " (call number)" : ""}`),
    column("A RUN LASTS", (row) => formatSpan(row.runSeconds)),
    column("LASTS", (row) => span(row.lastsYears)),
    {
      ...column("FAILS FIRST", (row: Split) => row.failsFirst ?? "nothing"),
      styleOf: (row) => (row.failsFirst === null ? undefined : "red"),
    },
  ];
  const from = `${grouped(processes)} ${processes === 1 ? "process" : "processes"}`;
  io.printPainted(`${io.paint("bold", `Splits of ${characters} characters for ${from}, each started once a day`)}\n`);
  io.printPainted(`${io.table(splitColumns, splits)}\n`);
  io.print(wrapped(callNumberText(callNumber), lineWidth(io)).join("\n"));
}

/** A recovery skips all runs up to the ceiling, so at worst the numbers last as long as the ceiling takes to rise. */
export function callNumberText({ runsPerYear, lastsYears }: Split): string {
  const perSecond = runsPerYear / YEAR_S;
  const rate = Math.max(RATE_DEFAULT, Math.ceil(perSecond));
  const option = rate === RATE_DEFAULT ? "the default of init" : `which init --rate ${rate} sets`;
  const ceiling =
    rate > RATE_MAX
      ? `First fails its run ceiling, which rises by at most ${RATE_MAX} runs a second.`
      : `If recoveries skip every run up to the run ceiling, it lasts ${formatSpan((2 ** VERSION_BITS * RUN_COUNT) / rate)}: ` +
        `the ceiling rises by ${rate} runs a second, ${option}.`;
  return (
    `The call number has ${CALL_NUMBER_LENGTH} characters: ${2 ** VERSION_BITS} versions of ${formatCount(RUN_COUNT)} runs of ` +
    `${grouped(2 ** SEQUENCE_BITS)} numbers. This load uses ${formatRate(perSecond).replace(" a ", " runs a ")}, for ` +
    `${formatSpan(lastsYears * YEAR_S)}. ${ceiling}`
  );
}

function column<Row>(heading: string, cellOf: Column<Row>["cellOf"]): Column<Row> {
  return { heading, cellOf, expendability: 0 };
}
