/** The list of call numbers of `recover --numbers`. Its greatest run is a floor for the recovery. */
import { createReadStream } from "node:fs";
import { escapeForTerminal } from "@callnumber/coordinator/internal/text";
import type { Floor } from "@callnumber/coordinator/operator";
import { ledgerIdOf, nameOfLedgerId, runOfLedgerId } from "@callnumber/protocol/api";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import { inputLines, linesOf } from "./input.js";
import { formatCount } from "./output.js";

/** A list that was read to its end. */
export interface CallNumberList {
  /** Its path, or "standard input". */
  readonly name: string;
  readonly callNumberCount: number;
  /** The first call number of the greatest run. */
  readonly greatest: ListedNumber;
}

interface ListedNumber {
  readonly ledgerId: number;
  readonly callNumber: string;
  /** Counted from 1. */
  readonly line: number;
}

const STANDARD_INPUT = "-";

/**
 * Reads the whole list in constant memory. Blank lines and white space around a call number are ignored.
 * @throws Error `numbers_invalid` when the list can't be read, is empty, or at the first line that is no call number.
 */
export async function readCallNumberList(file: string): Promise<CallNumberList> {
  const name = file === STANDARD_INPUT ? "standard input" : escapeForTerminal(file);
  const lines = file === STANDARD_INPUT ? inputLines() : linesOf(createReadStream(file, "utf8"), name);
  try {
    return await listIn(lines, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    const reason = escapeForTerminal((error as Error).message);
    throw invalid(`can't read the list of call numbers: ${reason}. Correct --numbers`, error);
  }
}

async function listIn(lines: AsyncIterable<string>, name: string): Promise<CallNumberList> {
  let line = 0;
  let callNumberCount = 0;
  let greatest: ListedNumber | undefined;
  for await (const text of lines) {
    line++;
    const callNumber = text.trim();
    if (callNumber === "") continue;
    const ledgerId = ledgerIdIn(callNumber, line, name);
    callNumberCount++;
    if (greatest === undefined || ledgerId > greatest.ledgerId) greatest = { ledgerId, callNumber, line };
  }
  // The program that made the list may have failed.
  if (greatest === undefined) throw invalid(`${name} has no call number. If the archive is empty, omit --numbers`);
  return { name, callNumberCount, greatest };
}

function ledgerIdIn(callNumber: string, line: number, name: string): number {
  try {
    const { version, run } = decodeCallNumber(callNumber);
    return ledgerIdOf(version, run);
  } catch (error) {
    if (!(error instanceof CallNumberError)) throw error;
    // It may be the number of the greatest run, damaged.
    throw invalid(`line ${line} of ${name} is no call number: ${error.message}. Nothing was changed. Correct the list`);
  }
}

function invalid(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code: "numbers_invalid" });
}

export function floorOf({ name, greatest: { ledgerId, callNumber, line } }: CallNumberList): Floor {
  return { from: `call number ${callNumber} (line ${line} of ${name})`, ledgerId };
}

export function listAsJson({ greatest: { ledgerId, ...greatest }, ...list }: CallNumberList): object {
  return { ...list, greatest: { ...greatest, ...runOfLedgerId(ledgerId) } };
}

export function formatList({ name, callNumberCount, greatest }: CallNumberList, currentVersion: number): string {
  const { ledgerId, callNumber, line } = greatest;
  const count = callNumberCount === 1 ? "1 call number" : `${formatCount(callNumberCount)} call numbers`;
  const run = nameOfLedgerId(ledgerId, currentVersion);
  return `  --numbers          greatest run ${run} (${callNumber}, line ${formatCount(line)}) of ${count} in ${name}`;
}
