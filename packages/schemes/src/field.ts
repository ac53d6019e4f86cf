/**
 * What a number is made of: fields, most significant first, each with its width and with what fills it.
 * Minting, spelling, taking apart and every figure of the comparison follow from these; a scheme declares, and computes nothing.
 */

/** Width in bits; in decimal digits where the scheme was made to be read by people; in characters of base62 where it was drawn as such. */
export type Width = { readonly bits: number } | { readonly digits: number } | { readonly base62: number };

/** What fills a field when a number is minted. Fields that a node or a counter fills in common share its digits, most significant first. */
export type Source =
  /** The same in every number that is minted: a version, a sign bit. Numbers with another value are `refused`, or `read` where they can be in the world. */
  | { readonly kind: "fixed"; readonly value: number; readonly others: "refused" | "read" }
  /** Whole units of time since the epoch. `unitMs` is 1,000 for seconds and 0.0001 for the 100 ns of a UUID. */
  | { readonly kind: "clock"; readonly unitMs: number; readonly epochMs: number }
  /** Tells this process from all others. Given by somebody who keeps the list, or taken from what the machine has: that may repeat. */
  | { readonly kind: "node"; readonly from: NodeSource }
  /** Drawn anew for each number, each value from `from` to `to` with the same chance. */
  | { readonly kind: "random"; readonly from: number; readonly to: number }
  /** The last digits of a number drawn from 0 to `drawnBelow - 1`, which is no multiple of the field's capacity: small values come more often. */
  | { readonly kind: "remainder"; readonly drawnBelow: number }
  /** Rises by one with each number. */
  | {
      readonly kind: "sequence";
      readonly within: SequenceScope;
      readonly first: number | "random";
    }
  /** Asked for from one central counter. */
  | { readonly kind: "counter"; readonly asked: "for each number" | "for each run" };

/** `mac hash` takes the number that is given where the machine shows no MAC address. */
export type NodeSource = "given" | "server" | "pid" | "mac hash";

/**
 * Where a sequence begins anew, and so what follows its last value. With the next unit of the clock: until then the step waits. With the next
 * process: it goes round, and waits so that none of it comes twice in one unit of the clock. With the next run: another is asked for. Never,
 * because its last value is kept: the step refuses.
 */
export type SequenceScope = "clock unit" | "process" | "run" | "kept";

export interface Field {
  /** One word, unique within the scheme: the key of its value. */
  readonly name: string;
  readonly width: Width;
  readonly source: Source;
}

/** How many values the field can have. */
export function capacityOf({ width }: Field): bigint {
  if ("bits" in width) return 1n << BigInt(width.bits);
  return "digits" in width ? 10n ** BigInt(width.digits) : 62n ** BigInt(width.base62);
}
