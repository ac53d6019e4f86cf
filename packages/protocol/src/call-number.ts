/** What a call number is, and what it stands for. */

/** Eight characters that the codec made or accepted. Compare them byte for byte: `a` and `A` are different digits. */
export type CallNumber = string & { readonly __brand: "CallNumber" };

/** What a call number stands for. */
export interface CallNumberParts {
  /** 0 to 7. */
  readonly version: number;
  /** 0 to 2^30 - 1. */
  readonly run: number;
  /** 0 to 16,383. */
  readonly sequence: number;
}
