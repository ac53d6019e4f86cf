/** Steps of the guard on any store, as a coordinator does them whose clock is the store's. */

import { type Bounds, DEFAULT_BOUNDS } from "../src/guard/clocks.js";
import type { Outcome, StepCommand } from "../src/guard/commands.js";
import { NamespaceSteps, type NamespaceStepsOptions } from "../src/guard/namespace-steps.js";
import type { Change, Expected } from "../src/guard/step-store.js";

/** With the clock and the bounds of those who use it, where a test sets them. */
type SteppedStore = NamespaceStepsOptions["store"] & { readonly bounds?: Bounds; readonly now?: () => number };

/** `now`: default the store's clock. What the step did is not verified. */
export async function stepOn(
  store: SteppedStore,
  namespace: string,
  command: StepCommand,
  { now, bounds = store.bounds ?? DEFAULT_BOUNDS }: Partial<Pick<NamespaceStepsOptions, "now" | "bounds">> = {},
): Promise<Outcome> {
  return await new NamespaceSteps({ store, namespace, now: now ?? (await clockOf(store, namespace)), bounds }).do(
    command,
  );
}

/** The steps of one coordinator, one after the other, on the state that the ones before have left. */
export function stepsOn(
  store: SteppedStore,
  namespace: string,
  {
    now = store.now ?? Date.now,
    bounds = store.bounds ?? DEFAULT_BOUNDS,
  }: Partial<Pick<NamespaceStepsOptions, "now" | "bounds">> = {},
): (command: StepCommand) => Promise<Outcome> {
  const steps = new NamespaceSteps({ store, namespace, now, bounds });
  return (command) => steps.do(command);
}

/** What a coordinator sends for a step to the store as it is now, for `apply` of a later moment. @throws CoordinatorError for a refusal. */
export async function preparedFor(
  store: SteppedStore,
  namespace: string,
  command: StepCommand,
  { now = Date.now, bounds = DEFAULT_BOUNDS }: Partial<Pick<NamespaceStepsOptions, "now" | "bounds">> = {},
): Promise<readonly [expected: Expected, change: Change]> {
  let sent: readonly [Expected, Change] | undefined;
  const apply: SteppedStore["apply"] = async (_, expected, change) => {
    sent = [expected, change];
    throw new Error("noted only");
  };
  const noting = { isExclusive: store.isExclusive, read: store.read.bind(store), apply };
  await new NamespaceSteps({ store: noting, namespace, now, bounds }).do(command).catch((error: unknown) => {
    if (sent === undefined) throw error;
  });
  if (sent === undefined) throw new Error("nothing was sent");
  return sent;
}

/** It stands still, as the clock of a test's store may. */
async function clockOf(store: SteppedStore, namespace: string): Promise<() => number> {
  const { server } = await store.read(namespace);
  return () => server.timeMs;
}
