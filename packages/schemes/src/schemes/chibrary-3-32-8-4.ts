/** Chibrary's second scheme, never deployed: version, seconds, a sequence of 256 in each second, and one of 16 parallel importers. */

import { defineScheme } from "../define-scheme.js";
import { base62, decimal } from "../encodings.js";
import type { Scheme } from "../scheme.js";

/**
 * Counts seconds since `serviceStartMs` (since 1970, UTC). The text that describes the scheme names no moment, so the caller does.
 * @throws RangeError where it is no whole number.
 */
export function chibrary33284Since(serviceStartMs: number): Scheme {
  if (!Number.isSafeInteger(serviceStartMs)) throw new RangeError(`no service starts at ${serviceStartMs} ms`);
  return defineScheme({
    name: "chibrary-3-32-8-4",
    title: "Chibrary's second: version, seconds, sequence, parallel slot",
    fields: [
      { name: "version", width: { bits: 3 }, source: { kind: "fixed", value: 0, others: "read" } },
      { name: "timestamp", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: serviceStartMs } },
      {
        name: "sequence",
        width: { bits: 8 },
        source: { kind: "sequence", within: "clock unit", first: 0 },
      },
      { name: "parallel", width: { bits: 4 }, source: { kind: "node", from: "server" } },
    ],
    encodings: [base62("base62", 8), decimal("decimal", 15)],
  });
}

/** Since 1970, so that a timestamp alone shows the time. */
export const chibrary33284 = chibrary33284Since(0);
