/**
 * Names that are kept: of holders, hosts and labels. They are shown in ledger, log, exports and console to everyone who may read them, so one
 * that holds a token is rejected before anything is written, and is not repeated.
 */
import { labelsSchema } from "@callnumber/protocol/schemas";
import type { Holder } from "@callnumber/protocol/wire";
import { holdsToken } from "../tokens-in-text.js";

export const TOKEN_IN_NAME =
  "holds a token, which everybody would read who may look at the ledger; revoke it, and send none but in Authorization";

/** Labels that are to be kept. */
export const newLabelsSchema = labelsSchema.refine(
  (labels) => !labelsHoldToken(labels),
  `one of them ${TOKEN_IN_NAME}`,
);

export function labelsHoldToken(labels: Holder["labels"]): boolean {
  return Object.entries(labels).some((texts) => texts.some(holdsToken));
}
