/** `schemes parse`: which scheme is a number of, and what is in it? */
import { Command } from "commander";
import { SCHEMES } from "../index.js";
import type { Reading, Scheme } from "../scheme.js";
import { type Candidate, candidatesOf, numberIn } from "./candidates.js";
import { fieldDigits, formatTime, type LabeledRows, labeledLines, lineWidth, valuesAsJson, wrapped } from "./format.js";
import type { SchemesIo } from "./io.js";
import { oneScheme, quoted } from "./options.js";

interface Options {
  readonly scheme?: Scheme;
  readonly json?: boolean;
}

export function parseCommand(io: SchemesIo): Command {
  return new Command("parse")
    .summary("Show the scheme and fields of a number")
    .description(
      "Shows which numbering schemes a number could be of, likeliest first, and its fields. First come those in which all that can be " +
        "checked is right: the time is one at which numbers were made, a fixed field has its value. Then those in which nothing can be " +
        "checked, last those in which something is wrong; among equals, those that write their numbers as this one is written. " +
        "The exit code is 1 when a text is a number of none.",
    )
    .argument("<text...>", "numbers, or URLs that end with one; or - to read them from standard input, one a line")
    .option("--scheme <name>", "only as a number of this scheme; callnumber schemes list has them", oneScheme)
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes parse 454947766275222906\n" +
        "  $ callnumber schemes parse --scheme uuid ed9210b3-4554-4f17-a8e0-7f9e538d9908\n" +
        "  $ callnumber schemes parse - < numbers.txt\n      a line each: text, scheme, fields, time, other schemes; tabs between them",
    )
    .action(async (texts: readonly string[], { scheme, json }: Options) => {
      const schemes = scheme === undefined ? SCHEMES : [scheme];
      if (texts.length === 1 && texts[0] === "-") {
        return io.answerLines((line) => (json ? parseAsJson(line, schemes, io) : parseAsLine(line, schemes)));
      }
      for (const [index, text] of texts.entries()) {
        const answer = json ? parseAsJson(text, schemes, io) : parseInFull(text, schemes, io);
        if (answer !== undefined) io.print(`${index === 0 || json ? "" : "\n"}${answer}`);
      }
    });
}

function parseInFull(typed: string, schemes: readonly Scheme[], io: SchemesIo): string | undefined {
  const text = numberIn(typed, schemes);
  const candidates = candidatesOf(text, schemes, Date.now());
  if (candidates.length > 0) return candidatesInFull(text, candidates, lineWidth(io));
  io.call.exitCode = 1;
  const bare = text.trim();
  const isOnlyPadded = bare !== text && schemes.some((scheme) => scheme.parse(bare).matches);
  io.printError(
    [
      `${quoted(text)} is no number of ${schemes.length === 1 ? schemes[0]?.name : "any scheme"}:`,
      ...labeledLines(reasonsAgainst(text, schemes), lineWidth(io)),
      ...(isOnlyPadded ? [`Without the white space around it, it is one: ${bare}`] : []),
    ].join("\n"),
  );
  return undefined;
}

/** One line, also for what is no number: a program counts them. */
function parseAsJson(typed: string, schemes: readonly Scheme[], { call, jsonLine }: SchemesIo): string {
  const text = numberIn(typed, schemes);
  const candidates = candidatesOf(text, schemes, Date.now());
  if (candidates.length > 0) return jsonLine({ text, schemes: candidates.map(candidateAsJson) });
  call.exitCode = 1;
  return jsonLine({ text, schemes: [], reasons: Object.fromEntries(reasonsAgainst(text, schemes)) });
}

/** Five columns with tabs between them. @throws Error for a line that is a number of no scheme. */
function parseAsLine(typed: string, schemes: readonly Scheme[]): string {
  const text = numberIn(typed, schemes);
  const [likeliest, ...others] = candidatesOf(text, schemes, Date.now());
  if (likeliest === undefined) {
    const [[, reason] = ["", ""]] = reasonsAgainst(text, schemes);
    throw new Error(schemes.length === 1 ? reason : `${quoted(text)} is a number of no scheme`);
  }
  const { scheme, reading } = likeliest;
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
  const [likeliest, ...others] = candidates as readonly [Candidate, ...Candidate[]];
  const { scheme, reading, mismatch } = likeliest;
  const fields: LabeledRows = scheme.fields.map(({ name }) => [name, String(reading.values[name])]);
  const time: LabeledRows = reading.timeMs === undefined ? [] : [["made at", formatTime(reading.timeMs)]];
  return [
    `${text}  ${others.length === 0 ? "is a number of" : "is most likely a number of"} ${scheme.name}`,
    ...wrapped(scheme.title, width - 2).map((line) => `  ${line}`),
    ...(mismatch === "" ? [] : [`  but ${mismatch}`]),
    "",
    ...labeledLines([...fields, ...time, ...Object.entries(reading.notes)], width),
    "",
    ...fieldDigits(scheme, reading.values, width),
    "",
    ...labeledLines(Object.entries(scheme.encodings(reading.values)), width),
    ...otherLines(others, width),
  ].join("\n");
}

/** Unlikely ones are named only: a small number is one of every scheme on its first day. */
function otherLines(others: readonly Candidate[], width: number): readonly string[] {
  const likely = others.filter(({ mismatch }) => mismatch === "");
  const unlikely = new Set(others.filter(({ mismatch }) => mismatch !== "").map(({ scheme }) => scheme.name));
  const lines: string[] = [];
  if (likely.length > 0) lines.push("", "Could also be a number of", ...labeledLines(likely.map(otherRow), width));
  if (unlikely.size > 0) {
    const text = `Unlikely by their time or version: ${[...unlikely].join(", ")} (--scheme NAME shows each)`;
    lines.push("", ...wrapped(text, width));
  }
  return lines;
}

function otherRow({ scheme, reading, isPlausible, isToday }: Candidate): readonly [string, string] {
  const notes: string[] = [];
  if (!isToday) notes.push(`${`as ${reading.encoding}`.replace(/^as as /, "as ")} ${fieldsInLine(scheme, reading)}`);
  if (reading.timeMs !== undefined) notes.push(`made at ${formatTime(reading.timeMs)}`);
  if (isPlausible === undefined) notes.push("nothing in it can be checked");
  return [scheme.name, notes.join("; ") || scheme.title];
}

function candidateAsJson({ scheme, reading, isPlausible, mismatch, isToday }: Candidate): object {
  return {
    scheme: scheme.name,
    plausible: isPlausible ?? null,
    mismatch: mismatch === "" ? null : mismatch,
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
