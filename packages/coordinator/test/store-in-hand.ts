/** A store with one namespace, and the few things that most tests do with it. */
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { onTestFinished } from "vitest";
import type { LeaseStep, Outcome, StepCommand } from "../src/guard/commands.js";
import type { NamespaceStepsOptions } from "../src/guard/namespace-steps.js";
import type { NamespaceRecord } from "../src/guard/record.js";
import type { Store } from "../src/stores/store.js";
import { type Commands, commandsFor, NAMESPACE, storeIdFrom } from "./commands-for-test.js";
import { stepsOn } from "./steps-for-test.js";
import type { OpenForTest, OpenOptions } from "./store-contract.js";

/** Runs as a step granted them. */
interface Granted {
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  readonly leasedAtMs: number;
}

/** The coordinator's clock, default the machine's, and its bounds. */
export interface InHandOptions extends Partial<Pick<NamespaceStepsOptions, "now" | "bounds">> {
  readonly storeId?: string;
  readonly namespace?: string;
  readonly nodeCount?: number;
}

export interface StoreInHand {
  readonly store: Store;
  readonly storeId: string;
  readonly commands: Commands;
  /** Does a step as one coordinator, which knows what its steps before have left. */
  step(command: StepCommand): Promise<Outcome>;
  lease(own?: Partial<LeaseStep>): Promise<Granted>;
  read(): Promise<NamespaceRecord>;
  /** Claims and confirms, as a recovering coordinator does; answers the mark that it skipped to. */
  skipAhead(): Promise<number>;
}

/** Makes the namespace. */
export async function withNamespace(
  store: Store,
  { storeId = storeIdFrom(1), nodeCount = 1, ...options }: InHandOptions = {},
): Promise<StoreInHand> {
  const one = inHand(store, { ...options, storeId });
  await one.step(one.commands.init({ nodeCount }));
  return one;
}

/** For a namespace that is made already. */
export function inHand(
  store: Store,
  { storeId, namespace = NAMESPACE, ...options }: InHandOptions & { readonly storeId: string },
): StoreInHand {
  const commands = commandsFor(storeId);
  const read = () => store.readNamespace(namespace);
  const step = stepsOn(store, namespace, options);
  return {
    store,
    storeId,
    commands,
    read,
    step,
    lease: async (own = {}) => grantedIn(await step(commands.lease(own))),
    async skipAhead() {
      const { generation } = await read();
      const claimed = await step(commands.claim(generation));
      const confirmed = await step(commands.confirm(claimed.after.generation));
      return confirmed.after.highWaterMark;
    },
  };
}

function grantedIn({ after, runCount }: Outcome): Granted {
  const { version, highWaterMark, changedAtMs: leasedAtMs } = after;
  return { version, firstRun: highWaterMark - runCount + 1, runCount, leasedAtMs };
}

/** Returns all leases of a small ledger, oldest first. */
export function ledgerOf(store: Store, namespace = NAMESPACE): Promise<readonly LedgerEntry[]> {
  return store.leases(namespace, { direction: "oldest_first", limit: 10_000 });
}

/** Opens a store that is removed at the end of the test. */
export async function opened(open: OpenForTest, options?: OpenOptions) {
  const { store, reopen, remove } = await open(options);
  onTestFinished(remove);
  return { store, reopen };
}
