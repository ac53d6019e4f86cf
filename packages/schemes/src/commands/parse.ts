/** `schemes parse`: which scheme is a number of, and what does it say? */
import { Command } from "commander";
import { SCHEMES, type Scheme } from "../index.js";
import { candidatesOf, numberIn, reasonsAgainst } from "./candidates.js";
import type { SchemesIo } from "./io.js";
import { oneOf, quickOption, quoted } from "./options.js";
import { candidatesAsJson, candidatesAsLine, candidatesInFull } from "./parsed-words.js";
import { labelled, lineWidth } from "./sentences.js";

interface Options {
  readonly scheme?: Scheme;
  readonly json?: boolean;
}

export function parseCommand(io: SchemesIo): Command {
  return new Command("parse")
    .summary("take a number of any scheme apart")
    .description(
      "Says which numbering schemes a number could be of, likeliest first, and what stands in it. First come those in which all that can " +
        "be checked is right: the time is one at which numbers were made, a fixed field has its value. Then those in which nothing " +
        "can be checked, last those in which something is wrong; among equals, those that write their numbers as this one is written. " +
        "The exit code is 1 when a text is a number of none.",
    )
    .argument("<text...>", "numbers, or addresses that end with one; or - to read them from standard input, one a line")
    .addOption(
      quickOption(
        "--scheme <name>",
        "only as a number of this scheme; callnumber schemes list has them",
        oneOf("scheme", SCHEMES),
      ),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes parse 454947766275222906\n" +
        "  $ callnumber schemes parse --scheme uuid ed9210b3-4554-4f17-a8e0-7f9e538d9908\n" +
        "  $ callnumber schemes parse - < numbers.txt\n      a line each: text, scheme, fields, time, other schemes; tabs between them",
    )
    .action(async (texts: readonly string[], { scheme, json }: Options) => {
      const schemes = scheme === undefined ? SCHEMES : [scheme];
      const isPipe = texts.length === 1 && texts[0] === "-";
      if (isPipe) return io.answerLines((line) => (json ? answerAsJson(line, schemes, io) : answerLine(line, schemes)));
      for (const [index, text] of texts.entries()) {
        const answer = json ? answerAsJson(text, schemes, io) : answerInFull(text, schemes, io);
        if (answer !== undefined) io.print(`${index === 0 || json ? "" : "\n"}${answer}`);
      }
    });
}

function answerInFull(typed: string, schemes: readonly Scheme[], io: SchemesIo): string | undefined {
  const text = numberIn(typed, schemes);
  const candidates = candidatesOf(text, schemes, Date.now());
  if (candidates.length > 0) return candidatesInFull(text, candidates, lineWidth(io));
  io.call.exitCode = 1;
  io.printError(whyNone(text, schemes, lineWidth(io)));
  return undefined;
}

/** One line, also for what is no number: a program counts them. */
function answerAsJson(typed: string, schemes: readonly Scheme[], { call, jsonLine }: SchemesIo): string {
  const text = numberIn(typed, schemes);
  const candidates = candidatesOf(text, schemes, Date.now());
  if (candidates.length > 0) return jsonLine(candidatesAsJson(text, candidates));
  call.exitCode = 1;
  const reasons = reasonsAgainst(text, schemes).map(({ scheme, reason }) => [scheme.name, reason] as const);
  return jsonLine({ text, schemes: [], reasons: Object.fromEntries(reasons) });
}

/** @throws Error for a line that is a number of no scheme. */
function answerLine(typed: string, schemes: readonly Scheme[]): string {
  const text = numberIn(typed, schemes);
  const candidates = candidatesOf(text, schemes, Date.now());
  if (candidates.length > 0) return candidatesAsLine(text, candidates);
  const [only] = reasonsAgainst(text, schemes);
  throw new Error(
    schemes.length === 1 && only !== undefined ? only.reason : `${quoted(text)} is a number of no scheme`,
  );
}

/** What each scheme has against it: the one that was meant is among them. */
function whyNone(text: string, schemes: readonly Scheme[], width: number): string {
  const bare = text.trim();
  const isNearly = bare !== text && candidatesOf(bare, schemes, Date.now()).length > 0;
  const reasons = reasonsAgainst(text, schemes).map(({ scheme, reason }) => [scheme.name, reason] as const);
  return [
    `${quoted(text)} is no number of ${schemes.length === 1 ? schemes[0]?.name : "any scheme"}:`,
    ...labelled(reasons, width),
    ...(isNearly ? [`Without the white space around it, it is one: ${bare}`] : []),
  ].join("\n");
}
