/** `parse`: which scheme is a number of, and what does it say? Offline. */
import { SCHEMES, type Scheme } from "@callnumber/schemes";
import { Command } from "commander";
import { quoted } from "../shown-text.js";
import { withoutTokens } from "../tokens-in-text.js";
import { running } from "./command-io.js";
import { withoutPasswords } from "./hidden-passwords.js";
import { NOT_QUICK, pipeLines } from "./pipe-lines.js";
import { jsonLine, print } from "./print.js";
import { quickOption } from "./quick-option.js";
import { candidatesOf, numberIn, reasonsAgainst } from "./schemes/candidates.js";
import { candidatesAsJson, candidatesAsLine, candidatesInFull } from "./schemes/parsed-words.js";
import { schemeOf } from "./schemes/scheme-choice.js";
import { labelled } from "./schemes/sentences.js";

interface Options {
  readonly scheme?: Scheme;
  readonly json?: boolean;
}

export function parseCommand(): Command {
  return new Command("parse")
    .summary("takes a number of any scheme apart (offline)")
    .description(
      "Says which numbering schemes a number could be of, likeliest first, and what stands in it. First come those in which all that can " +
        "be checked is right: the time is one at which numbers were made, a fixed field has its value. Then those in which nothing " +
        "can be checked, last those in which something is wrong; among equals, those that write their numbers as this one is written. " +
        "Needs no coordinator. The exit code is 1 when a text is a number of none.",
    )
    .argument("<text...>", "numbers, or addresses that end with one; or - to read them from standard input, one a line")
    .addOption(
      quickOption("--scheme <name>", "only as a number of this scheme; callnumber schemes lists them", (name) =>
        schemeOf(name, SCHEMES),
      ),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber parse 454947766275222906\n  $ callnumber parse --scheme uuid ed9210b3-4554-4f17-a8e0-7f9e538d9908\n" +
        "  $ callnumber parse - < numbers.txt     a line each: text, scheme, fields, time, other schemes; tabs between them",
    )
    .action(async (texts: readonly string[], { scheme, json }: Options) => {
      const schemes = scheme === undefined ? SCHEMES : [scheme];
      if (texts.length === 1 && texts[0] === "-") {
        return pipeLines({
          quick: () => NOT_QUICK,
          answer: (line) => (json ? answerAsJson : answerLine)(withoutTokens(line), schemes),
        });
      }
      for (const [index, text] of withoutPasswords(texts).entries()) {
        const answer = json ? answerAsJson(text, schemes) : answerInFull(text, schemes);
        if (answer !== undefined) print(`${index === 0 || json ? "" : "\n"}${answer}`);
      }
    });
}

function answerInFull(typed: string, schemes: readonly Scheme[]): string | undefined {
  const text = numberIn(typed, schemes);
  const candidates = candidatesOf(text, schemes, Date.now());
  if (candidates.length > 0) return candidatesInFull(text, candidates);
  const command = running();
  command.exitCode = 1;
  command.io.stderr.write(`${whyNone(text, schemes)}\n`);
  return undefined;
}

/** One line, also for what is no number: a program counts them. */
function answerAsJson(typed: string, schemes: readonly Scheme[]): string {
  const text = numberIn(typed, schemes);
  const candidates = candidatesOf(text, schemes, Date.now());
  if (candidates.length > 0) return jsonLine(candidatesAsJson(text, candidates));
  running().exitCode = 1;
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
function whyNone(text: string, schemes: readonly Scheme[]): string {
  const bare = text.trim();
  const isNearly = bare !== text && candidatesOf(bare, schemes, Date.now()).length > 0;
  return [
    `${quoted(text)} is no number of ${schemes.length === 1 ? schemes[0]?.name : "any scheme"}:`,
    ...labelled(reasonsAgainst(text, schemes).map(({ scheme, reason }) => [scheme.name, reason] as const)),
    ...(isNearly ? [`Without the white space around it, it is one: ${bare}`] : []),
  ].join("\n");
}
