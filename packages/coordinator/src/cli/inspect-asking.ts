/** One question of `inspect`: from what was typed to the coordinator's answer, or to one that needs no coordinator. */

import { callNumberIn } from "@callnumber/protocol/call-number-in";
import { CallNumberError } from "@callnumber/protocol/codec";
import { inspectAnswerSchema } from "@callnumber/protocol/schemas";
import { type InspectAnswer, pathOf } from "@callnumber/protocol/wire";
import { callNumberFieldsIn, inspectMalformed } from "../inspection.js";
import { withoutTokens } from "../tokens-in-text.js";
import { askCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";

export interface Asking {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  /** Whether to ask for the leases of the same process before and after. */
  readonly withNeighbours: boolean;
}

/** A longer text finds no way into the coordinator. */
const ESCAPED_LENGTH_MAX = 256;
/** What a path resolves away, however it is escaped. */
const NO_SEGMENTS: ReadonlySet<string> = new Set(["", ".", ".."]);

/**
 * What a text, or the URL of a page, stands for. What no call number is spelt like is malformed also when no coordinator
 * answers; then nobody knows what it may have been meant for.
 * @throws AskError for a text that is well spelt.
 */
export async function inspectText(asking: Asking, text: string): Promise<InspectAnswer> {
  const { namespace, withNeighbours } = asking;
  // It would go into an address.
  const callNumber = withoutTokens(callNumberIn(text) ?? text);
  const ask = () => {
    const query = withNeighbours ? "" : "?neighbours=no";
    return askCoordinator(asking, pathOf("callNumber", { namespace, callNumber }) + query, inspectAnswerSchema);
  };
  const fields = callNumberFieldsIn(callNumber);
  if (!(fields instanceof CallNumberError)) return await ask();
  const malformed = inspectMalformed({ namespace, callNumber }, fields, []);
  if (!fitsPath(callNumber)) return malformed;
  try {
    return await ask();
  } catch (error) {
    if (error instanceof AskError) return malformed;
    throw error;
  }
}

function fitsPath(text: string): boolean {
  try {
    return !NO_SEGMENTS.has(text) && encodeURIComponent(text).length <= ESCAPED_LENGTH_MAX;
  } catch {
    // Half a character.
    return false;
  }
}
