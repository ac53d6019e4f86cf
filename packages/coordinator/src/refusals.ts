/** The refusals that are worded the same way wherever they are found: in every store, in the rules above, at the terminal. */
import { CoordinatorError } from "./errors.js";

export function notInitialised(namespace: string): CoordinatorError {
  return new CoordinatorError(
    "namespace_not_initialised",
    `the store holds no namespace "${namespace}". If that name is new, make it with ` +
      `"callnumber init --namespace ${namespace} --store …" on the coordinator's store (an embedded one must be stopped first). ` +
      "If an archive already holds numbers of it, this is the wrong store or an emptied one: do not init, find the right one",
  );
}

export function alreadyInitialised(namespace: string): CoordinatorError {
  return new CoordinatorError(
    "namespace_already_initialised",
    `namespace "${namespace}" exists already; nothing was changed`,
  );
}

export function wentBack(namespace: string, mark: number, floor: number): CoordinatorError {
  return new CoordinatorError(
    "store_went_back",
    `the store says that run ${mark} is the last one leased in namespace "${namespace}", but run ${floor} was leased already: ` +
      "it was restored, emptied or replaced. Nothing is leased. Stop the coordinators and bring the newest state of the store back",
  );
}

export function exhausted(namespace: string, version: number): CoordinatorError {
  return new CoordinatorError(
    "run_space_exhausted",
    `all runs of version ${version} in namespace "${namespace}" are leased; no number is ever used again`,
  );
}

export function notLeased(namespace: string, ledgerId: number): CoordinatorError {
  return new CoordinatorError("run_not_leased", `run ${ledgerId} of namespace "${namespace}" was never leased`);
}

export function notTheHolder(run: number): CoordinatorError {
  return new CoordinatorError(
    "not_the_holder",
    `the report on run ${run} does not bear the nonce of its lease; nothing was changed`,
  );
}

export function noStoreId(namespace: string, found: string): CoordinatorError {
  return new CoordinatorError(
    "store_corrupt",
    `the record of namespace "${namespace}" holds no store id but ${JSON.stringify(found)}`,
  );
}
