/** A run in a path: its ledger id in decimal digits, and in no other spelling. */
import { ledgerIdSchema } from "@callnumber/protocol/schemas";
import { z } from "zod";

export const runParameter = z
  .string()
  .regex(/^(0|[1-9]\d{0,9})$/, "a run is a whole number")
  .transform(Number)
  .pipe(ledgerIdSchema);
