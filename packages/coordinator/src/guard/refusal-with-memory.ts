/** Refusals of a store that does not answer for itself any more, told with what is remembered of it. */
import { commandLine } from "@callnumber/protocol/operator";
import { runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { STOP_AND_RUN } from "./refusals.js";
import type { GuardState } from "./guard-state.js";
import { DAMAGED, type Remembrance } from "./checkpoint.js";

/** Of a store that is gone, or holds the namespace no more. */
function recoverLost(namespace: string, { storeId, ledgerId }: Pick<Remembrance, "storeId" | "ledgerId">): string {
  return commandLine("recover", namespace, { "store-id": storeId, floor: ledgerId });
}

/** A store that held the namespace and holds it no more was emptied, or is another one. */
export function asEmptied(error: unknown, namespace: string, remembered: Remembrance): unknown {
  if (!(error instanceof CoordinatorError) || error.code !== "namespace_not_initialised") return error;
  return emptied(namespace, remembered);
}

/** For a store that does not hold a namespace which is remembered. */
export function emptied(namespace: string, remembered: Remembrance | typeof DAMAGED): CoordinatorError {
  if (remembered === DAMAGED) {
    return new CoordinatorError(
      "store_emptied",
      `namespace "${namespace}" is missing, and what is remembered of it is damaged. Nothing is leased. Restore the store. If it is lost, ` +
        `${STOP_AND_RUN}, with the id kept beside the archive, \`${commandLine("recover", namespace, { "store-id": "STORE_ID" })}\``,
    );
  }
  const { storeId, ledgerId } = remembered;
  return new CoordinatorError(
    "store_emptied",
    `namespace "${namespace}" is missing, but run ${ledgerId} was leased from it. Nothing is leased. Restore the store. If it is lost, ` +
      `${STOP_AND_RUN} \`${recoverLost(namespace, { storeId, ledgerId })}\``,
  );
}

const STATE_WORDS: Readonly<Record<GuardState["state"], string>> = {
  open: "The namespace is open",
  in_doubt: "Leasing waits",
  fenced: "Leasing is FENCED",
};

/** The same refusal, with whether the namespace leases, where that is known, and what an operator would else ask the store for. */
export function withMemory(error: unknown, remembered: Remembrance, state?: GuardState): unknown {
  if (!(error instanceof CoordinatorError)) return error;
  const { code, message, retryAfterMs } = error;
  const told = [
    message,
    ...(state === undefined ? [] : [`${STATE_WORDS[state.state]} since ${new Date(state.sinceMs).toISOString()}`]),
    // Else the message tells it already.
    ...(code === "store_emptied" ? [] : [`Remembered here: ${inWords(remembered)}`]),
  ];
  return new CoordinatorError(code, told.join(". "), {
    cause: error,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function inWords({ storeId, ledgerId, generation }: Remembrance): string {
  const { version, run } = runOfLedgerId(ledgerId);
  return `store id ${storeId}, run ${run}${version === 0 ? "" : ` of version ${version}`}, generation ${generation}`;
}
