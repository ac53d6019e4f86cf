/** A store with one namespace, and the few things that most tests do with it. */
import type { LeaseStep, NamespaceRecord, Store } from "../src/stores/store.js";
import { type Commands, commandsFor, NAMESPACE, storeIdFrom } from "./commands-for-test.js";

/** Runs as a step granted them. */
export interface Granted {
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  readonly leasedAtMs: number;
}

export interface StoreInHand {
  readonly store: Store;
  readonly storeId: string;
  readonly commands: Commands;
  lease(own?: Partial<LeaseStep>): Promise<Granted>;
  read(): Promise<NamespaceRecord>;
  /** Claims and confirms, as a recovering coordinator does; answers the mark that it skipped to. */
  skipAhead(): Promise<number>;
}

/** Makes the namespace. */
export async function withNamespace(
  store: Store,
  { storeId = storeIdFrom(1), namespace = NAMESPACE } = {},
): Promise<StoreInHand> {
  await store.step(namespace, commandsFor(storeId).init());
  return inHand(store, { storeId, namespace });
}

/** For a namespace that is made already. */
export function inHand(store: Store, { storeId, namespace = NAMESPACE }: { storeId: string; namespace?: string }) {
  const commands = commandsFor(storeId);
  const read = () => store.readNamespace(namespace);
  return {
    store,
    storeId,
    commands,
    read,
    lease: (own: Partial<LeaseStep> = {}) => leaseFrom(store, commands.lease(own), namespace),
    async skipAhead() {
      const { generation } = await read();
      const claimed = await store.step(namespace, commands.claim(generation));
      const confirmed = await store.step(namespace, commands.confirm(claimed.after.generation));
      return confirmed.after.highWaterMark;
    },
  };
}

export async function leaseFrom(store: Store, command: LeaseStep, namespace = NAMESPACE): Promise<Granted> {
  const { after, runCount } = await store.step(namespace, command);
  const { version, highWaterMark, changedAtMs: leasedAtMs } = after;
  return { version, firstRun: highWaterMark - runCount + 1, runCount, leasedAtMs };
}
