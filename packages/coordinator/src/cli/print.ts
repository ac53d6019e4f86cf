/** Words and JSON on standard output. */
import { stdout } from "node:process";
import type { Holder } from "@callnumber/protocol/wire";

export function print(text: string): void {
  stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** `name=value name=value`; empty for a holder without labels. */
export function labelsInWords({ labels }: Holder): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

export function instant(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
