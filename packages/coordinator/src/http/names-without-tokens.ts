/**
 * Names that somebody chose and that are kept: of holders, hosts and labels. They stand in ledger, log, exports and console, for everybody
 * who may look; one that holds a token is refused before anything is asked or written, and is not repeated.
 */
import { labelsRequestSchema } from "@callnumber/protocol/operator-schemas";
import { labelsSchema, leaseRequestSchema } from "@callnumber/protocol/schemas";
import type { Holder, LeaseRequest } from "@callnumber/protocol/wire";
import { holdsToken } from "../text.js";

const REASON =
  "holds a token, which everybody would read who may look at the ledger; revoke it, and send none but in Authorization";

export const leaseBodySchema = leaseRequestSchema.superRefine(({ holder }: LeaseRequest, context) => {
  const { name, host, labels } = holder;
  for (const [field, text] of Object.entries({ name, host })) {
    if (holdsToken(text)) context.addIssue({ code: "custom", path: ["holder", field], message: REASON });
  }
  if (holdTokens(labels)) context.addIssue({ code: "custom", path: ["holder", "labels"], message: REASON });
});

export const labelsBodySchema = labelsRequestSchema.refine(({ labels }) => !holdTokens(labels), {
  path: ["labels"],
  message: REASON,
});

/** As the wire's own, of labels that are to be kept. */
export const newLabelsSchema = labelsSchema.refine((labels) => !holdTokens(labels), `one of them ${REASON}`);

function holdTokens(labels: Holder["labels"]): boolean {
  return Object.entries(labels).some((texts) => texts.some(holdsToken));
}
