/**
 * What a scan of an archive has found so far: how many call numbers, the greatest run among them, and what could not be read.
 * Call numbers are shuffled: the greatest text is not the greatest run, so each is decoded. Knows nothing of files, lines or
 * columns; those who do hand over one place of the archive after the other. Needs the same memory for a billion as for one.
 */
import {
  CALL_NUMBER_LENGTH,
  CallNumberError,
  decodeCallNumber,
  fromNumber,
  runInBytes,
} from "@callnumber/protocol/codec";
import { shown } from "./shown.js";

export interface ScanResult {
  readonly callNumberCount: number;
  /** Places with nothing in them. */
  readonly blankCount: number;
  readonly malformedCount: number;
  /** The first few of them. */
  readonly malformed: readonly Malformed[];
  /** Undefined when no call number was found. */
  readonly greatest: GreatestRun | undefined;
}

export interface Malformed {
  /** The line of the file, counted from 1; null where there are no lines. */
  readonly line: number | null;
  readonly why: string;
}

export interface GreatestRun {
  /** `version · 2^30 + run`: a run of a later version is the greater one. */
  readonly ledgerId: number;
  /** The first call number of that run that was met, and where. */
  readonly callNumber: string;
  readonly line: number | null;
}

const MALFORMED_SHOWN_MAX = 5;
const SPACE = 0x20;
const SLASH = 0x2f;

export class ArchiveScan {
  #callNumberCount = 0;
  #blankCount = 0;
  #malformedCount = 0;
  readonly #malformed: Malformed[] = [];
  #greatestId = -1;
  #greatestCallNumber = "";
  #greatestLine: number | null = null;

  /**
   * Takes what stands in one place, the bytes from `start` to before `end`: a call number, alone or as the last part of a path
   * or URL, with white space around it; or nothing. Everything else is malformed.
   */
  take(bytes: Buffer, start: number, end: number, line: number | null): void {
    let [first, behind] = [start, end];
    while (first < behind && (bytes[first] as number) <= SPACE) first++;
    while (first < behind && (bytes[behind - 1] as number) <= SPACE) behind--;
    if (first === behind) {
      this.#blankCount++;
      return;
    }
    const spelt = behind - CALL_NUMBER_LENGTH;
    const ledgerId = spelt === first || isEndOfPath(bytes, first, spelt) ? runInBytes(bytes, spelt) : -1;
    if (ledgerId < 0) this.takeMalformed(line, () => whyMalformed(bytes.toString("utf8", first, behind)));
    else this.#takeRun(ledgerId, bytes, spelt, line);
  }

  /** Takes a call number that is kept as the number it writes (`toNumber`). */
  takeNumber(number: number): void {
    try {
      const callNumber = Buffer.from(fromNumber(number), "latin1");
      this.#takeRun(runInBytes(callNumber, 0), callNumber, 0, null);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.takeMalformed(null, () => `${number} is not the number of a call number`);
    }
  }

  takeBlank(): void {
    this.#blankCount++;
  }

  /** `why` is asked only of those that are shown. */
  takeMalformed(line: number | null, why: () => string): void {
    this.#malformedCount++;
    if (this.#malformed.length < MALFORMED_SHOWN_MAX) this.#malformed.push({ line, why: why() });
  }

  get result(): ScanResult {
    return {
      callNumberCount: this.#callNumberCount,
      blankCount: this.#blankCount,
      malformedCount: this.#malformedCount,
      malformed: [...this.#malformed],
      greatest:
        this.#greatestId < 0
          ? undefined
          : { ledgerId: this.#greatestId, callNumber: this.#greatestCallNumber, line: this.#greatestLine },
    };
  }

  #takeRun(ledgerId: number, bytes: Buffer, spelt: number, line: number | null): void {
    this.#callNumberCount++;
    if (ledgerId <= this.#greatestId) return;
    this.#greatestId = ledgerId;
    this.#greatestCallNumber = bytes.toString("latin1", spelt, spelt + CALL_NUMBER_LENGTH);
    this.#greatestLine = line;
  }
}

/** Whether the bytes from `first` to before `spelt` are a path or URL up to its last slash. */
function isEndOfPath(bytes: Buffer, first: number, spelt: number): boolean {
  if (spelt <= first || bytes[spelt - 1] !== SLASH) return false;
  for (let place = first; place < spelt; place++) if ((bytes[place] as number) <= SPACE) return false;
  return true;
}

function whyMalformed(text: string): string {
  // Of a path its last part is what should be a call number.
  const last = text.includes("/") && !/\s/.test(text) ? text.slice(text.lastIndexOf("/") + 1) : undefined;
  try {
    decodeCallNumber(last ?? text);
  } catch (error) {
    if (!(error instanceof CallNumberError)) throw error;
    return last === undefined ? error.message : `at the end of ${shown(text)}: ${error.message}`;
  }
  throw new Error(`broken invariant: ${shown(text)} is a call number in text and none in bytes`);
}
