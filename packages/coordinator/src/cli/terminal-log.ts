/** The log of `serve` for a person at a terminal: warnings and errors as a line of text each. */
import { DEFAULT_NAMESPACE } from "@callnumber/protocol/wire";
import { isRecoverable } from "../guard/guard-state.js";
import type { Log } from "../log.js";
import { escapeAndShorten, MESSAGE_LENGTH_MAX } from "../text.js";

type Fields = Readonly<Record<string, unknown>>;

/** The namespace is named in front; a nonce lets its holder report. */
const HIDDEN: ReadonlySet<string> = new Set(["namespace", "nonce"]);

export function terminalLog(say: (text: string) => void): Log {
  const tell = (severity: string) => (fields: object, event: string) => {
    const text = textOf(severity, fields as Fields, event);
    if (text !== undefined) say(text);
  };
  return { debug: () => {}, info: () => {}, warn: tell("Warning"), error: tell("Error") };
}

function textOf(severity: string, fields: Fields, event: string): string | undefined {
  const { namespace, explanation } = fields;
  if (event === "jump") return `${explanation}${namespace === DEFAULT_NAMESPACE ? "" : ` (namespace ${namespace})`}`;
  // The recovery that follows at once is logged as a jump, and what stops it as another code.
  if (event === "in_doubt" && isRecoverable(fields)) return undefined;
  const where = typeof namespace === "string" ? `, namespace ${namespace}` : "";
  const { err } = fields;
  if (err instanceof Error) return `${severity}${where}: ${err.stack} (${event})`;
  const what = causeOf(fields) ?? fieldsInWords(fields);
  return what === "" ? undefined : `${severity}${where}: ${escapeAndShorten(what, MESSAGE_LENGTH_MAX)} (${event})`;
}

function causeOf({ explanation, reason, what, remedy }: Fields): string | undefined {
  if (typeof what === "string" && typeof remedy === "string") return `${what}. ${remedy}`;
  return [explanation, reason, what].find((text) => typeof text === "string");
}

function fieldsInWords(fields: Fields): string {
  return Object.entries(fields)
    .filter(([name]) => !HIDDEN.has(name))
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}
