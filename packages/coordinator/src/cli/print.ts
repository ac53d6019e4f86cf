/** Words and JSON on standard output. Whatever others chose and stands in them does not act on the terminal. */
import type { Holder } from "@callnumber/protocol/wire";
import { escapeJson, escapeLines } from "../text.js";
import { commandIo } from "./command-io.js";
import { filled } from "./filled-commands.js";

export function print(text: string): void {
  printPainted(escapeLines(filled(text)));
}

/** For what bears our own colours: what others chose was made visible before they came. */
export function printPainted(text: string): void {
  commandIo().stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  printPainted(escapeJson(JSON.stringify(value, withFilled, 2)));
}

/** JSON in one line. */
export function jsonLine(value: unknown): string {
  return escapeJson(JSON.stringify(value, withFilled));
}

function withFilled(_: string, value: unknown): unknown {
  return typeof value === "string" ? filled(value) : value;
}

/** Between two labels stands one, too. */
const BLANK = /\p{Zs}/u;

/** `name=value name="a value"`; empty where there are no labels. */
export function labelsInWords({ labels }: Pick<Holder, "labels">): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${BLANK.test(value) ? JSON.stringify(value) : value}`)
    .join(" ");
}

export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

export function instant(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
