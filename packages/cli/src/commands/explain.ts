/** `explain`: cause and fix of an error, from docs/reference/errors.md, which the build copies into the package. Needs no coordinator. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { print, printJson } from "../output.js";

export interface ErrorEntry {
  readonly code: string;
  /** HTTP status and retry rule; or what reports it. */
  readonly kind: string;
  readonly cause: string;
  readonly fix: string;
}

/** Returns an entry for each code, in the order of the page. */
export function errorEntries(): readonly ErrorEntry[] {
  const [, ...sections] = readFileSync(new URL("./errors.md", import.meta.url), "utf8").split(/^### /m);
  return sections.map((section) => {
    const entry = /^`([a-z_]+)` (.*?)\. (.*) \*\*Fix:\*\* (.*)$/.exec(plainText(section));
    if (entry === null) throw new Error(`the reference of errors has an entry without cause and fix: ${section}`);
    const [, code = "", kind = "", cause = "", fix = ""] = entry;
    return { code, kind, cause, fix };
  });
}

/** On one line. Links lead to pages that the package does not contain. */
function plainText(markdown: string): string {
  return markdown
    .replace(/\[([^\]]+)\]\([^)]+\)/g, "$1")
    .trim()
    .replace(/\s+/g, " ");
}

export function makeCommand(): Command {
  return new Command("explain")
    .description(
      "Prints what causes an error and how to fix it. The code stands in parentheses at the end of a message, and in the field code of JSON.",
    )
    .argument("<code>", "the code, such as store_locked")
    .addHelpText("after", "\nExamples:\n  $ callnumber explain store_locked")
    .action(explain);
}

function explain(typed: string, { json }: { readonly json?: boolean }): void {
  const entries = errorEntries();
  const code = typed
    .toLowerCase()
    .replace(/[^a-z]+/g, "_")
    .replace(/^_|_$/g, "");
  const found = entries.find((entry) => entry.code === code);
  if (found === undefined) {
    const codes = entries.map((entry) => entry.code);
    const similar = similarTo(code, codes);
    const choice = similar.length === 0 ? `All codes: ${codes.join(", ")}` : `Similar: ${similar.join(", ")}`;
    throw new TypeError(`no error has the code ${JSON.stringify(typed)}. ${choice}`);
  }
  if (json) printJson(found);
  else print(`${found.code} (${found.kind})\nCause: ${found.cause}\nFix: ${found.fix}`);
}

const SIMILAR_COUNT_MAX = 5;
const LIKENESS_MIN = 0.6;

/** The most similar first. */
function similarTo(code: string, codes: readonly string[]): readonly string[] {
  return codes
    .map((other) => ({ other, likeness: likeness(code, other) }))
    .filter((one) => one.likeness >= LIKENESS_MIN)
    .sort((one, other) => other.likeness - one.likeness)
    .slice(0, SIMILAR_COUNT_MAX)
    .map(({ other }) => other);
}

/** Returns the share of the pairs of letters in `typed` that the code has, too, 0 to 1. */
function likeness(typed: string, code: string): number {
  const [pairs, others] = [pairsIn(typed), pairsIn(code)];
  return [...pairs].filter((pair) => others.has(pair)).length / pairs.size;
}

function pairsIn(text: string): ReadonlySet<string> {
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)));
}
