/** `schemes parse`: which scheme is a number of, and what is in it? */
import { Command } from "commander";
import { SCHEMES, schemesFor } from "../index.js";
import type { Reading, Scheme } from "../scheme.js";
import { type Candidate, candidatesOf, numberIn, whyNone } from "./candidates.js";
import { fieldDigits, formatTime, type LabeledRows, labeledLines, lineWidth, valuesAsJson, wrapped } from "./format.js";
import type { SchemesIo } from "./io.js";
import { epochOption, oneScheme, quoted, withEpoch } from "./options.js";

interface Options {
  readonly scheme?: Scheme;
  readonly epoch?: number;
  readonly json?: boolean;
}

export function parseCommand(io: SchemesIo): Command {
  return new Command("parse")
    .summary("Show the scheme and fields of a number")
    .description(
      "Shows the fields of a number, and up to three numbering schemes that it could be of, the likeliest first, each with the reason: " +
        "how it is written, and whether its time and fields are plausible. Among equals the more common scheme comes first. " +
        "The exit code is 1 when a text is a number of none.",
    )
    .argument("<text...>", "numbers, or URLs that end with one; or - to read them from standard input, one a line")
    .option("--scheme <name>", "only as a number of this scheme; callnumber schemes list has them", oneScheme)
    .addOption(epochOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes parse 454947766275222906\n" +
        "  $ callnumber schemes parse --scheme twitter-snowflake \\\n      --epoch 2015-01-01 175928847299117063\n" +
        "  $ callnumber schemes parse - < numbers.txt\n      a line each: text, scheme, fields, time, other schemes; tabs between them",
    )
    .action(async (texts: readonly string[], { scheme, epoch, json }: Options) => {
      const named = scheme && [withEpoch(scheme, epoch)];
      const answer = (typed: string, answerIn: typeof parseInFull) => {
        const text = numberIn(typed, named ?? SCHEMES);
        return answerIn(text, named ?? schemesFor(text, epoch), io);
      };
      if (texts.length === 1 && texts[0] === "-") {
        return io.answerLines((line) => answer(line, json ? parseAsJson : parseAsLine) as string);
      }
      for (const [index, text] of texts.entries()) {
        const answered = answer(text, json ? parseAsJson : parseInFull);
        if (answered !== undefined) io.print(`${index === 0 || json ? "" : "\n"}${answered}`);
      }
    });
}

const SHOWN_MAX = 3;

/** Of one scheme that was named, all that the text may mean. */
function likeliest(text: string, schemes: readonly Scheme[]): readonly Candidate[] {
  return candidatesOf(text, schemes, Date.now()).slice(0, schemes.length === 1 ? undefined : SHOWN_MAX);
}

function parseInFull(text: string, schemes: readonly Scheme[], io: SchemesIo): string | undefined {
  const candidates = likeliest(text, schemes);
  if (candidates.length > 0) return candidatesInFull(text, candidates, lineWidth(io));
  io.call.exitCode = 1;
  io.printError(noNumber(text, schemes));
  return undefined;
}

function noNumber(text: string, schemes: readonly Scheme[]): string {
  return `${quoted(text)} is not a number of ${schemes.length === 1 ? schemes[0]?.name : "any scheme"}: ${whyNone(text, schemes)}`;
}

/** One line, also for what is not a number: a program counts them. */
function parseAsJson(text: string, schemes: readonly Scheme[], { call, jsonLine }: SchemesIo): string {
  const candidates = likeliest(text, schemes);
  if (candidates.length > 0) return jsonLine({ text, schemes: candidates.map(candidateAsJson) });
  call.exitCode = 1;
  return jsonLine({ text, schemes: [], reasons: Object.fromEntries(reasonsAgainst(text, schemes)) });
}

/** Five columns with tabs between them. @throws Error for a line that is a number of no scheme. */
function parseAsLine(text: string, schemes: readonly Scheme[]): string {
  const [first, ...others] = likeliest(text, schemes);
  if (first === undefined) throw new Error(noNumber(text, schemes));
  const { scheme, reading } = first;
  const time = reading.timeMs === undefined ? "" : formatTime(reading.timeMs);
  const names = new Set(others.map((other) => other.scheme.name).filter((name) => name !== scheme.name));
  return [text, scheme.name, fieldsInLine(scheme, reading), time, [...names].join(" ")].join("\t");
}

function reasonsAgainst(text: string, schemes: readonly Scheme[]): LabeledRows {
  return schemes.flatMap((scheme) => {
    const parsed = scheme.parse(text);
    return parsed.matches ? [] : [[scheme.name, parsed.reason] as const];
  });
}

/** @param candidates at least one. */
export function candidatesInFull(text: string, candidates: readonly Candidate[], width: number): string {
  const [first, ...others] = candidates as readonly [Candidate, ...Candidate[]];
  const { scheme, reading, reason } = first;
  const fields: LabeledRows = scheme.fields.map(({ name }) => [name, String(reading.values[name])]);
  const time: LabeledRows = reading.timeMs === undefined ? [] : [["made at", formatTime(reading.timeMs)]];
  return [
    `${text}  ${others.length === 0 ? "is a number of" : "is most likely a number of"} ${scheme.name}`,
    ...wrapped(scheme.title, width - 2).map((line) => `  ${line}`),
    "",
    ...labeledLines([...fields, ...time, ...Object.entries(reading.notes), ["reason", reason]], width),
    "",
    ...fieldDigits(scheme, reading.values, width),
    "",
    ...labeledLines(Object.entries(scheme.encodings(reading.values)), width),
    ...(others.length === 0 ? [] : ["", "Could also be a number of", ...labeledLines(others.map(otherRow), width)]),
  ].join("\n");
}

function otherRow({ scheme, reading, reason, isToday }: Candidate): readonly [string, string] {
  const time = reading.timeMs === undefined ? [] : [`made at ${formatTime(reading.timeMs)}`];
  const fields = isToday ? [] : [fieldsInLine(scheme, reading)];
  return [scheme.name, [reason, ...time, ...fields].join("; ")];
}

function candidateAsJson({ scheme, reading, check, mismatch, reason, isToday }: Candidate): object {
  return {
    scheme: scheme.name,
    plausible: check === "unchecked" ? null : check === "right",
    mismatch: mismatch === "" ? null : mismatch,
    reason,
    encoding: reading.encoding,
    writtenAsToday: isToday,
    number: String(reading.number),
    fields: valuesAsJson(reading.values),
    timeMs: reading.timeMs ?? null,
    notes: reading.notes,
    encodings: scheme.encodings(reading.values),
  };
}

function fieldsInLine({ fields }: Scheme, { values }: Reading): string {
  return fields.map(({ name }) => `${name}=${values[name]}`).join(" ");
}
