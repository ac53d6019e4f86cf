/** `--numbers`: a list of call numbers. The greatest run among them is a floor for `recover`. */
import { createReadStream } from "node:fs";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import type { Option } from "commander";
import { z } from "zod";
import type { Floor } from "../operator/recover.js";
import { escapeForTerminal } from "../text.js";
import { inputLines, linesOf } from "./input-lines.js";
import { checkedOption } from "./options.js";
import { grouped } from "./print.js";

/** A list that was read to its end. */
export interface ListedNumbers {
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

/** A list that can't be read, or has a line that is no call number. */
class NumbersError extends Error {
  override readonly name = "NumbersError";
  readonly code = "numbers_invalid";
}

const STANDARD_INPUT = "-";

export function numbersOption(): Option {
  return checkedOption(
    "--numbers <file>",
    "call numbers of the archive, one per line; - for standard input. Their greatest run is a floor",
    z.string().min(1),
  );
}

/**
 * Reads the whole list in constant memory. Blank lines and white space around a call number are ignored.
 * @throws NumbersError `numbers_invalid` when the list can't be read, is empty, or at the first line that is no call number.
 */
export async function readNumbers(file: string): Promise<ListedNumbers> {
  const name = file === STANDARD_INPUT ? "standard input" : escapeForTerminal(file);
  const lines = file === STANDARD_INPUT ? inputLines() : linesOf(createReadStream(file, "utf8"), name);
  try {
    return await listedIn(lines, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    const why = escapeForTerminal((error as Error).message);
    throw new NumbersError(`can't read the list of call numbers: ${why}. Correct --numbers`, { cause: error });
  }
}

async function listedIn(lines: AsyncIterable<string>, name: string): Promise<ListedNumbers> {
  let line = 0;
  let callNumberCount = 0;
  let greatest: ListedNumber | undefined;
  for await (const text of lines) {
    line++;
    const callNumber = text.trim();
    if (callNumber === "") continue;
    const ledgerId = ledgerIdIn(callNumber, () => `line ${line} of ${name}`);
    callNumberCount++;
    if (greatest === undefined || ledgerId > greatest.ledgerId) greatest = { ledgerId, callNumber, line };
  }
  // Whatever made the list may have failed.
  if (greatest === undefined) {
    throw new NumbersError(`${name} has no call number. If the archive is empty, omit --numbers`);
  }
  return { name, callNumberCount, greatest };
}

function ledgerIdIn(callNumber: string, where: () => string): number {
  try {
    const { version, run } = decodeCallNumber(callNumber);
    return ledgerIdOf(version, run);
  } catch (error) {
    if (!(error instanceof CallNumberError)) throw error;
    // It may be the number of the greatest run, damaged.
    throw new NumbersError(`${where()} is no call number: ${error.message}. Nothing was changed. Correct the list`);
  }
}

export function floorOf({ name, greatest: { ledgerId, callNumber, line } }: ListedNumbers): Floor {
  return { from: `call number ${callNumber} (line ${line} of ${name})`, ledgerId };
}

export function numbersInWords({ name, callNumberCount, greatest }: ListedNumbers): string {
  const { ledgerId, callNumber, line } = greatest;
  const counted = callNumberCount === 1 ? "1 call number" : `${grouped(callNumberCount)} call numbers`;
  const { run } = runOfLedgerId(ledgerId);
  return `  --numbers          greatest run ${grouped(run)} (${callNumber}, line ${grouped(line)}) of ${counted} in ${name}`;
}
