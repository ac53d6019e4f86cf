/**
 * The fields of a number, most significant first, each with its width and its source.
 * Minting, encoding, parsing and every figure of the comparison follow from these: a scheme declares, and computes nothing.
 */

/** In bits; in decimal digits where people were to read the number; in base62 characters where these are drawn. */
export type Width = { readonly bits: number } | { readonly digits: number } | { readonly base62: number };

/** What fills a field when a number is minted. Several fields of one node or counter share its digits, most significant first. */
export type Source =
  /** The same in every minted number: a version, a sign bit. Numbers with another value are `refused`, or `read` where they can exist. */
  | { readonly kind: "fixed"; readonly value: number; readonly others: "refused" | "read" }
  /** Whole units of time since the epoch. `unitMs` is 1,000 for seconds and 0.0001 for the 100 ns of a UUID. */
  | { readonly kind: "clock"; readonly unitMs: number; readonly epochMs: number }
  /** Tells this process from all others: assigned from a list, or derived from the machine, which may repeat. */
  | { readonly kind: "node"; readonly from: NodeSource }
  /** Drawn for each number, each value from `from` to `to` with the same chance. */
  | { readonly kind: "random"; readonly from: number; readonly to: number }
  /** The last digits of a number drawn from 0 to `drawnBelow - 1`, which is no multiple of the field's capacity: small values come more often. */
  | { readonly kind: "remainder"; readonly drawnBelow: number }
  /** Rises by one with each number. */
  | {
      readonly kind: "sequence";
      readonly within: SequenceScope;
      readonly first: number | "random";
    }
  /** Requested from one central counter. */
  | { readonly kind: "counter"; readonly asked: "for each number" | "for each run" };

/** `mac hash` takes the assigned number where the machine has no MAC address. */
export type NodeSource = "given" | "server" | "pid" | "mac hash";

/**
 * Where a sequence restarts, and so what follows its last value. `clock unit`: the step waits for the next unit. `process`: it wraps around,
 * and waits so that no value comes twice in one unit of the clock. `run`: another run is requested. `kept`: the step fails.
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
