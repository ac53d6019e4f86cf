/** What commands print: text, JSON and failures, all without characters that act on a terminal; and colors. */
import { styleText } from "node:util";
import { escapeForTerminal, escapeJson, escapeLines } from "@callnumber/coordinator/internal/text";
import { filledCommands, type Holder, runName, withSeparators } from "@callnumber/protocol/api";
import { type CommandIo, invocation, redactSecrets } from "./invocation.js";

export { formatCount } from "@callnumber/protocol/api";

export function print(text: string): void {
  printPainted(escapeLines(withContext(text)));
}

/** Prints text with our own colors. What another program wrote must have been escaped before. */
export function printPainted(text: string): void {
  invocation().io.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  printPainted(escapeJson(JSON.stringify(value, stringWithContext, 2)));
}

/** Returns JSON on one line. */
export function jsonLine(value: unknown): string {
  return escapeJson(JSON.stringify(value, stringWithContext));
}

/** Fills in the printed commands: the store and checkpoint directory of the command that is running. */
function withContext(text: string): string {
  const { context } = invocation();
  return context === undefined ? text : filledCommands(text, context);
}

function stringWithContext(_: string, value: unknown): unknown {
  return typeof value === "string" ? withContext(value) : value;
}

/** The coordinator gives every client the same message. At a terminal, the user can act on it. */
const ADVICE: ReadonlyMap<unknown, string> = new Map([
  ["unauthorized", "Pass --token-file FILE, or set CALLNUMBER_TOKEN_FILE"],
  [
    "forbidden",
    "Pass a token of role lease to generate call numbers, of role read or operator to read (--token-file), or a --namespace of the token",
  ],
]);

interface Failure {
  readonly code?: unknown;
  readonly message?: unknown;
}

function isMisused(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

/** Returns a failure as JSON on a line. `more`: what it is about, such as the line of the input. */
export function failureLine(error: unknown, more: object = {}): string {
  const { code, message } = (error ?? {}) as Failure;
  const ownCode = typeof code === "string" ? code : isMisused(error) ? "misuse" : "internal_error";
  return jsonLine({ code: ownCode, message: String(message ?? error), ...more });
}

/** Formats a failure: the message and its code; an internal error with its stack. */
export function failureText(error: unknown, asJson: boolean): string {
  if (asJson) return `${failureLine(error)}\n`;
  const { code, message } = (error ?? {}) as Failure;
  const isMisuse = isMisused(error);
  if (!isMisuse && typeof code !== "string") {
    const stack = error instanceof Error ? String(error.stack) : String(error);
    return `callnumber: internal error: ${escapeLines(stack)}\n`;
  }
  const advice = ADVICE.get(code);
  const text = `callnumber: ${withContext(isMisuse ? String(message) : withSeparators(String(message)))}${typeof code === "string" ? ` (${code})` : ""}`;
  return escapeLines(`${advice === undefined ? text : `${text}. ${advice}`}\n`);
}

/** Formats a message of the option parser, which repeats values. With `--json` in the form of other failures. */
export function misuseText(text: string, asJson: boolean): string {
  const safe = redactSecrets(text);
  if (!asJson) return `callnumber: ${escapeLines(safe)}\n`;
  return `${jsonLine({ code: "misuse", message: safe })}\n`;
}

/** Escapes every text of a response, for people: each on one line. Names of fields are ours. */
export function escapeFields<T>(response: T): T {
  const escape = (_: string, value: unknown) => (typeof value === "string" ? escapeForTerminal(value) : value);
  return JSON.parse(JSON.stringify(response), escape) as T;
}

export type Style = "bold" | "dim" | "red" | "yellow" | "green";
export type Paint = (style: Style | undefined, text: string) => string;

export const plain: Paint = (_style, text) => text;

const colored: Paint = (style, text) =>
  style === undefined ? text : styleText(style, text, { validateStream: false });

type Terminal = Pick<CommandIo, "env"> & { readonly stdout: { readonly isTTY?: boolean | undefined } };

/** Colors on a terminal, but not where NO_COLOR is set (no-color.org). FORCE_COLOR turns them on elsewhere. */
export function paintFor({ env, stdout }: Terminal = invocation().io): Paint {
  const { NO_COLOR = "", FORCE_COLOR, TERM } = env;
  if (NO_COLOR !== "") return plain;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR === "0" || FORCE_COLOR === "false" ? plain : colored;
  return stdout.isTTY && TERM !== "dumb" ? colored : plain;
}

const BLANK = /\p{Zs}/u;

/** Formats labels as `name=value name="a value"`; empty without labels. */
export function formatLabels({ labels }: Pick<Holder, "labels">): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${BLANK.test(value) ? JSON.stringify(value) : value}`)
    .join(" ");
}

export function formatTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** The namespace that a command acts on. */
export interface Where {
  readonly store: string;
  readonly storeId: string;
  readonly namespace: string;
}

export function formatWhere({ store, storeId, namespace }: Where): string {
  return `namespace ${namespace} of ${store}, store id ${storeId}`;
}

/** Formats the record of a namespace. */
export function formatRecord(record: {
  readonly version: number;
  readonly highWaterMark: number;
  readonly changedAtMs: number;
}): string {
  const { version, highWaterMark, changedAtMs } = record;
  return `high-water mark ${runName(version, highWaterMark)}, written ${formatTime(changedAtMs)}`;
}
