/** What a person can do about an error of the client. Beyond this table: docs/errors.md has a heading for each code. */
import { ClientError } from "@callnumber/client";
import type { ClientErrorCode } from "@callnumber/protocol/wire";
import { ImporterError } from "../errors.js";

const AGAIN = "then give the same command again: it goes on where it stopped";

const REMEDIES: Partial<Record<ClientErrorCode, string>> = {
  coordinator_unreachable: `Start the coordinator (callnumber serve) or give its address with --coordinator, ${AGAIN}.`,
  wait_timed_out: `Look at the coordinator (callnumber status), or allow more time with --wait, ${AGAIN}.`,
  other_store:
    "The archive pins the store of its first number. Give --coordinator the address of that store. If it is lost, see docs/operations.md before you number on.",
  namespace_not_initialised: `Make the namespace with callnumber init, or give another with --namespace, ${AGAIN}.`,
  unauthorized: `Give --token-file with a token that the coordinator knows, ${AGAIN}.`,
  forbidden: `Give --token-file with a token for leasing in this namespace, or another --namespace, ${AGAIN}.`,
  store_unavailable: `Look at the coordinator's store, ${AGAIN}.`,
  shutting_down: `The coordinator is being stopped. Start it again, ${AGAIN}.`,
};

/** An error of the client with its code, and what to do; any other error as it is. */
export function withRemedy(error: unknown): unknown {
  if (!(error instanceof ClientError)) return error;
  const remedy = REMEDIES[error.code] ?? `See ${error.code} in docs/errors.md; ${AGAIN}.`;
  return new ImporterError(error.code, error.message, remedy, { cause: error });
}
