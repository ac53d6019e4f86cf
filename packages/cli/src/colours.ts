/**
 * Colours on a terminal, for people: never in JSON, and never where NO_COLOR is set (no-color.org), whatever else is. FORCE_COLOR
 * asks for them where there is no terminal, as a pager or a CI's log would.
 */
import { styleText } from "node:util";
import { commandIo } from "./command-io.js";

export type Style = "bold" | "dim" | "red" | "yellow" | "green";
export type Paint = (style: Style | undefined, text: string) => string;

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: boolean;
}

export const plain: Paint = (_style, text) => text;

const coloured: Paint = (style, text) =>
  style === undefined ? text : styleText(style, text, { validateStream: false });

export function paintFor(asJson: boolean, { env: { NO_COLOR, FORCE_COLOR, TERM }, isTerminal } = here()): Paint {
  if (asJson || isSet(NO_COLOR)) return plain;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR === "0" || FORCE_COLOR === "false" ? plain : coloured;
  return isTerminal && TERM !== "dumb" ? coloured : plain;
}

function here(): Surroundings {
  const { env, stdout } = commandIo();
  return { env, isTerminal: stdout.isTTY === true };
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== "";
}
