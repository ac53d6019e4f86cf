/** Importers in Python for tests: what they print, and what the ledger has of them. */
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { callnumber } from "../processes/command.js";
import { PYTHON_CLIENT, python } from "./python.js";

export const IMPORTER = join(PYTHON_CLIENT, "tests", "importer.py");

export const imported = (url: string, ...words: readonly string[]) =>
  python([IMPORTER, ...words], { CALLNUMBER_COORDINATOR: url });

export async function leasesAt(url: string): Promise<readonly LedgerEntry[]> {
  const { stdout } = await callnumber(["runs", "--json", "--limit", "500", "--coordinator", url]);
  return JSON.parse(stdout) as LedgerEntry[];
}

/** By process id. */
export function numbersIn(stdout: string): ReadonlyMap<string, readonly string[]> {
  const numbers = new Map<string, string[]>();
  for (const [, pid = "", number = ""] of stdout.matchAll(/^(\d+) (\w{8})$/gm)) {
    const ofProcess = numbers.get(pid) ?? [];
    ofProcess.push(number);
    numbers.set(pid, ofProcess);
  }
  return numbers;
}
