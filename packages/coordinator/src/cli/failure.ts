/** How a failure is told at the terminal: what happened and its code; a fault of our own with all we know. */
interface Told {
  readonly code?: unknown;
  readonly message?: unknown;
}

/** What the option parser says of a wrong command line, as the other failures are told with --json. */
export function misuseAsJson(text: string): string {
  return `${JSON.stringify({ code: "misuse", message: text.replace(/^error: /, "").trim() })}\n`;
}

export function failureOf(error: unknown, asJson: boolean): string {
  const { code, message } = (error ?? {}) as Told;
  const isMisuse = error instanceof TypeError || error instanceof RangeError;
  const isForeseen = isMisuse || typeof code === "string";
  if (asJson) {
    return `${JSON.stringify({ code: typeof code === "string" ? code : isMisuse ? "misuse" : "internal_error", message: String(message ?? error) })}\n`;
  }
  if (!isForeseen) return `callnumber: a fault of our own: ${error instanceof Error ? error.stack : String(error)}\n`;
  return `callnumber: ${String(message)}${typeof code === "string" ? ` (${code})` : ""}\n`;
}
