/** What somebody pasted: a call number, or an address that holds one. Works offline, by the codec. Pure. */
import { callNumberIn as callNumberInAddress } from "@callnumber/protocol/call-number-in";
import {
  CALL_NUMBER_BITS,
  CALL_NUMBER_LENGTH,
  CallNumberError,
  type CallNumberParts,
  DIGITS,
  decodeCallNumber,
  isCallNumber,
  RUN_BITS,
  SEQUENCE_BITS,
  SHUFFLE,
  toNumber,
  VERSION_BITS,
} from "@callnumber/protocol/codec";

/** The call number in a pasted text, or the text itself where none is found; and what else in it is spelt like one. */
export function callNumberIn(text: string): { readonly callNumber: string; readonly others: readonly string[] } {
  const trimmed = text.trim();
  const callNumber = callNumberInAddress(trimmed) ?? trimmed;
  // A word of eight letters may be spelt like one, and be the last of an address.
  const spelt = trimmed.split(/[^0-9A-Za-z]+/).filter((part) => part !== callNumber && isCallNumber(part));
  return { callNumber, others: [...new Set(spelt)] };
}

export const FIELDS = ["version", "run", "sequence"] as const;
type Field = (typeof FIELDS)[number];

export interface Bit {
  readonly value: 0 | 1;
  readonly field: Field;
  /** Weight within its field: 2 to this power. */
  readonly power: number;
  /** Place before the shuffle, 0 to 46, most significant first. */
  readonly before: number;
  /** Place after it. */
  readonly after: number;
}

export interface Decoded extends CallNumberParts {
  readonly callNumber: string;
  readonly number: number;
  /** In their order before the shuffle. */
  readonly bits: readonly Bit[];
  /** The eight characters with their values. */
  readonly digits: readonly { readonly character: string; readonly value: number; readonly power: number }[];
}

/** The parts of a call number, bit by bit, or why it is none. */
export function decoded(callNumber: string): Decoded | CallNumberError {
  try {
    const parts = decodeCallNumber(callNumber);
    return {
      callNumber,
      ...parts,
      number: toNumber(callNumber),
      bits: bitsOf(parts),
      digits: [...callNumber].map((character, index) => ({
        character,
        value: DIGITS.indexOf(character),
        power: CALL_NUMBER_LENGTH - 1 - index,
      })),
    };
  } catch (error) {
    if (error instanceof CallNumberError) return error;
    throw error;
  }
}

const WIDTHS: Readonly<Record<Field, number>> = { version: VERSION_BITS, run: RUN_BITS, sequence: SEQUENCE_BITS };

function bitsOf(parts: CallNumberParts): readonly Bit[] {
  const fields = FIELDS.flatMap((field) =>
    Array.from({ length: WIDTHS[field] }, (_, index) => ({ field, power: WIDTHS[field] - 1 - index })),
  );
  if (fields.length !== CALL_NUMBER_BITS) throw new Error("the fields and the layout differ");
  return fields.map(({ field, power }, before) => ({
    value: (Math.floor(parts[field] / 2 ** power) % 2) as 0 | 1,
    field,
    power,
    before,
    after: SHUFFLE.indexOf(before),
  }));
}
