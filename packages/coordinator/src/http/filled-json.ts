/** Commands in JSON that operators read, with what they need to run: docs/errors.md shows them with placeholders. */
import { type CommandContext, filledCommands, STORE_URL } from "@callnumber/protocol/operator";

export function filledJson(json: string, context: CommandContext): string {
  if (!json.includes(STORE_URL)) return json;
  const filled = (_: string, value: unknown) => (typeof value === "string" ? filledCommands(value, context) : value);
  return JSON.stringify(JSON.parse(json, filled));
}

/** The same of a line of the log, with its end. */
export function filledLine(line: string, context: CommandContext): string {
  return line.includes(STORE_URL) ? `${filledJson(line, context)}\n` : line;
}
