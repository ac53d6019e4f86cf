/** What a person pasted: a call number, or a link or sentence that contains one. Works offline, by the codec. Pure. */
import { callNumberIn as callNumberInText, UnclearTextError } from "@callnumber/protocol/api";
import {
  CallNumberError,
  type CallNumberParts,
  decodeCallNumber,
  RUN_BITS,
  SEQUENCE_BITS,
  SHUFFLE,
  toNumber,
  VERSION_BITS,
} from "@callnumber/protocol/codec";

export const WIDTHS = { version: VERSION_BITS, run: RUN_BITS, sequence: SEQUENCE_BITS } as const;
type Field = keyof typeof WIDTHS;
export const FIELDS = Object.keys(WIDTHS) as readonly Field[];

export interface Bit {
  readonly value: 0 | 1;
  readonly field: Field;
}

export interface Decoded extends CallNumberParts {
  readonly number: number;
  /** Most significant first. */
  readonly bitsBefore: readonly Bit[];
  /** The same after the shuffle. */
  readonly bitsAfter: readonly Bit[];
}

/** The call number in a pasted text, or the text itself where none is found, or several are. */
export function callNumberIn(text: string): string {
  const trimmed = text.trim();
  try {
    return callNumberInText(trimmed) ?? trimmed;
  } catch (error) {
    if (error instanceof UnclearTextError) return trimmed;
    throw error;
  }
}

/** The parts of the call number in a text, or why there is none. */
export function decoded(text: string): Decoded | CallNumberError {
  try {
    const callNumber = callNumberInText(text) ?? text;
    const parts = decodeCallNumber(callNumber);
    const bitsBefore = FIELDS.flatMap((field) => bitsOf(field, parts[field]));
    const bitsAfter = [...SHUFFLE].map((place) => bitsBefore[place] as Bit);
    return { ...parts, number: toNumber(callNumber), bitsBefore, bitsAfter };
  } catch (error) {
    if (error instanceof CallNumberError) return error;
    throw error;
  }
}

function bitsOf(field: Field, value: number): readonly Bit[] {
  const digits = value.toString(2).padStart(WIDTHS[field], "0");
  return [...digits].map((digit) => ({ value: digit === "1" ? 1 : 0, field }));
}
