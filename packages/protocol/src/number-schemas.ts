/** The numbers that people type and store, as zod schemas: call numbers, names of runs, ledger ids. */
import * as z from "zod";
import { type CallNumber, isCallNumber, NUMBER_MAX } from "./codec.js";
import { LEDGER_ID_MAX } from "./http-api.js";
import { parseRunName, RUN_NAME_FORM } from "./run-name.js";

/** A call number in a schema of a user: parses to the branded `CallNumber`, rejects every other text. */
export const callNumberSchema = z
  .string()
  .refine(isCallNumber, "not a call number: eight characters 0-9, A-Z, a-z, not above dxlGgaI3")
  .transform((text) => text as CallNumber);

/** A call number as a plain number, the compact form for a database. */
export const callNumberAsNumberSchema = z.int().min(0).max(NUMBER_MAX);

/** A run as people type it: `99`, `1/65556`. */
export const runNameSchema = z.string().transform((text, context) => {
  const named = parseRunName(text);
  if (named !== undefined) return named;
  context.addIssue(RUN_NAME_FORM);
  return z.NEVER;
});

/** Where a page of leases begins. */
export const cursorSchema = z
  .string()
  .refine((text) => parseRunName(text) !== undefined, "a cursor is what an earlier page gave as nextCursor");

/** A ledger id. */
export const ledgerIdSchema = z.int().min(0).max(LEDGER_ID_MAX);
