/**
 * How a failure is told at the terminal: what happened and its code; a fault of our own with all we know. A token that was given where it
 * does not belong, such as where a file is named, is not repeated.
 */
import { escapeLines, withoutTokens } from "../text.js";
import { filled } from "./filled-commands.js";
import { jsonLine } from "./print.js";

interface Told {
  readonly code?: unknown;
  readonly message?: unknown;
}

/** What the coordinator may not say: its answer is one for all callers, whatever is wrong. Here somebody sits who can do something. */
const ADVICE: Readonly<Record<string, string>> = {
  unauthorized: "Give one that it knows: --token-file FILE, or CALLNUMBER_TOKEN_FILE",
  forbidden:
    "Tokens of role lease make call numbers, those of role read or operator look, each in its own namespaces: " +
    "give another --token-file or --namespace",
};

/** What the option parser says of a wrong command line, as the other failures are told with --json. */
export function misuseAsJson(text: string): string {
  return `${jsonLine({ code: "misuse", message: withoutTokens(text.replace(/^error: /, "").trim()) })}\n`;
}

export function failureOf(error: unknown, asJson: boolean): string {
  return withoutTokens(toldOf(error, asJson));
}

function toldOf(error: unknown, asJson: boolean): string {
  const { code, message } = (error ?? {}) as Told;
  const isMisuse = error instanceof TypeError || error instanceof RangeError;
  const isForeseen = isMisuse || typeof code === "string";
  if (asJson) {
    return `${jsonLine({ code: typeof code === "string" ? code : isMisuse ? "misuse" : "internal_error", message: String(message ?? error) })}\n`;
  }
  if (!isForeseen) {
    const all = error instanceof Error ? String(error.stack) : String(error);
    return `callnumber: a fault of our own: ${escapeLines(all)}\n`;
  }
  const advice = typeof code === "string" && Object.hasOwn(ADVICE, code) ? `. ${ADVICE[code]}` : "";
  // The lines are our own: what others said was put into one, where it came in.
  return escapeLines(
    `callnumber: ${filled(String(message))}${typeof code === "string" ? ` (${code})` : ""}${advice}\n`,
  );
}
