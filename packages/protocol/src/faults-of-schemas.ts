/** What a schema rejects, in our words: zod's own name the types of JavaScript, and leave out the value. */
import type * as z from "zod";
import { describe } from "./quoted.js";

type Issue = z.core.$ZodRawIssue;

const TYPES: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "true or false",
  int: "a whole number",
  null: "null",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a text",
};
const LENGTH_MAX = 200;

/** For `safeParse(value, SCHEMA_WORDS)`. A schema's own message comes before these. */
export const SCHEMA_WORDS = { error: (issue: Issue) => wordsFor(issue, ", not ", shownOf) };
/** The same where the value may be a secret. */
export const SECRET_SCHEMA_WORDS = { error: (issue: Issue) => wordsFor(issue, "", () => "") };

function wordsFor(issue: Issue, not: string, shown: (value: unknown) => string): string | undefined {
  const { input } = issue;
  const wrong = `${not}${shown(input)}`;
  switch (issue.code) {
    case "invalid_type":
      return input === undefined ? "is missing" : `must be ${TYPES[issue.expected] ?? issue.expected}${wrong}`;
    case "too_big":
      return bound(issue.origin, `at most ${issue.maximum}`, wrong);
    case "too_small":
      return bound(issue.origin, `at least ${issue.minimum}`, wrong);
    case "invalid_value":
      if (input === undefined) return "is missing";
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.map(describe).join(", ")}${wrong}`;
    case "unrecognized_keys":
      return `has no field ${issue.keys.map(describe).join(", ")}`;
    default:
      return undefined;
  }
}

/** A value, as a message shows it: of what has parts, no more than what it is. */
export function shownOf(value: unknown): string {
  if (typeof value === "boolean") return String(value);
  return Array.isArray(value)
    ? "an array"
    : typeof value === "object" && value !== null
      ? "an object"
      : describe(value);
}

function bound(origin: string, limit: string, wrong: string): string {
  if (origin === "string") return `must have ${limit} characters`;
  return origin === "array" || origin === "set" ? `must have ${limit} entries` : `must be ${limit}${wrong}`;
}

/** A message is a sentence that begins after the name of the field, or a whole one. */
export function faultOf(field: string, message: string): string {
  return /^(must|is|has|holds) /.test(message) ? `${field} ${message}` : `${field}: ${message}`;
}

/** The faults of a value in one line of at most 200 characters, each with its field. `subject`: the value itself, such as "the body". */
export function faultsOf({ issues }: Pick<z.core.$ZodError, "issues">, subject: string): string {
  const faults = issues.map(({ path, message }) => faultOf(path.join(".") || subject, message));
  for (let count = faults.length; count > 1; count--) {
    const others = faults.length - count;
    const text = `${faults.slice(0, count).join("; ")}${others === 0 ? "" : `; and ${others} more`}`;
    if (text.length <= LENGTH_MAX) return text;
  }
  return `${faults[0]}${faults.length > 1 ? `; and ${faults.length - 1} more` : ""}`;
}
