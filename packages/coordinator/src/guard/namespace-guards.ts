/**
 * The guards of all namespaces that a coordinator serves: each is opened on first use and kept. Knows nothing about clients. And the ledger
 * as requests read it, so that none takes a namespace that the store lost for a new one, and advises `init`.
 */
import { CoordinatorError } from "../errors.js";
import { msSince } from "../log.js";
import type { RecordedLedger, Store } from "../stores/store.js";
import type { CheckpointFile } from "./checkpoint.js";
import { type GuardState, StateMonitor } from "./guard-state.js";
import { NamespaceGuard, type NamespaceGuardOptions } from "./namespace-guard.js";

type GuardOptions = Required<Omit<NamespaceGuardOptions, "namespace" | "checkpointFile">> & {
  /** Namespaces with a checkpoint, also those that the store has lost. */
  readonly checkpointed: ReadonlySet<string>;
};

/** A namespace that is served, and whose guard could not be opened yet. */
export interface RefusedNamespace {
  readonly namespace: string;
  readonly guard: GuardState;
}

export class NamespaceGuards {
  readonly #options: GuardOptions;
  readonly #checkpointFileOf: (namespace: string) => CheckpointFile;
  /** Open, or about to be. */
  readonly #guards = new Map<string, Promise<NamespaceGuard>>();
  readonly #opened = new Map<string, NamespaceGuard>();
  readonly #refused = new Map<string, StateMonitor>();

  constructor(options: GuardOptions, checkpointFileOf: (namespace: string) => CheckpointFile) {
    this.#options = options;
    this.#checkpointFileOf = checkpointFileOf;
  }

  /**
   * Returns the guard of a namespace. One that can't be opened is tried again by the next request.
   * @throws CoordinatorError as `NamespaceGuard.open`.
   */
  of(namespace: string): Promise<NamespaceGuard> {
    const known = this.#guards.get(namespace);
    if (known !== undefined) return known;
    const opening = this.#open(namespace);
    this.#guards.set(namespace, opening);
    opening.catch(() => this.#guards.delete(namespace));
    return opening;
  }

  /** Undefined for a namespace without a record. */
  async ifInitialized(namespace: string): Promise<NamespaceGuard | undefined> {
    try {
      return await this.of(namespace);
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === "namespace_not_found") return undefined;
      throw error;
    }
  }

  /**
   * Returns the namespaces that the store lists, and those that it held before it lost them. Names of requests are not included: a client may
   * invent them. @throws CoordinatorError `store_unavailable`.
   */
  async names(): Promise<ReadonlySet<string>> {
    const { store, checkpointed } = this.#options;
    return new Set([...(await store.listNamespaces()), ...this.#opened.keys(), ...checkpointed]);
  }

  /** Returns the namespaces whose guard the last heartbeat could not open, and why. */
  refused(): readonly RefusedNamespace[] {
    return [...this.#refused].map(([namespace, { state }]) => ({ namespace, guard: state }));
  }

  /** Returns the guards that are open by now, without a request to the store. */
  opened(): readonly NamespaceGuard[] {
    return [...this.#opened.values()];
  }

  /** Writes a heartbeat into the record of every namespace; never rejects. */
  async heartbeatAll(): Promise<void> {
    const logFailure = (error: Error) => this.#options.log.warn({ reason: error.message }, "heartbeat_failed");
    // In a Cluster one node has the list, and others have what it lists: they get heartbeats also when that node is down.
    const namespaces = await this.names().catch((error: Error) => {
      logFailure(error);
      return this.#opened.keys();
    });
    await Promise.all([...namespaces].map((namespace) => this.#heartbeat(namespace))).catch(logFailure);
  }

  /** Closes the checkpoint files. @throws CoordinatorError `checkpoint_unavailable`, once all are closed. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#guards.values());
    const closings = this.opened().map(async (guard) => guard.close());
    for (const closing of await Promise.allSettled(closings)) if (closing.status === "rejected") throw closing.reason;
  }

  /** A refusal becomes the state of the guard, or of the namespace here where there is no guard yet. */
  async #heartbeat(namespace: string): Promise<void> {
    const { log } = this.#options;
    let guard: NamespaceGuard | undefined;
    try {
      guard = await this.of(namespace);
      this.#refused.delete(namespace);
      const startedMs = performance.now();
      await guard.heartbeat();
      log.debug({ namespace, durationMs: msSince(startedMs) }, "heartbeat");
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      log.debug({ namespace, code: error.code, reason: error.message }, "heartbeat_rejected");
      if (guard === undefined) this.#noteRefused(namespace, error);
    }
  }

  #noteRefused(namespace: string, error: CoordinatorError): void {
    if (error.code === "namespace_not_found") {
      this.#refused.delete(namespace);
      return;
    }
    const monitor = this.#refused.get(namespace) ?? new StateMonitor({ ...this.#options, namespace });
    this.#refused.set(namespace, monitor);
    monitor.noteRefusal(error);
  }

  async #open(namespace: string): Promise<NamespaceGuard> {
    const checkpointFile = this.#checkpointFileOf(namespace);
    try {
      const guard = await NamespaceGuard.open({ ...this.#options, namespace, checkpointFile });
      this.#opened.set(namespace, guard);
      return guard;
    } catch (error) {
      checkpointFile.close();
      throw error;
    }
  }
}

export type ServedLedger = RecordedLedger & Pick<Store, "setProgress">;

/** Returns the ledger of a store, with `namespace_lost` where the store says `namespace_not_found` of a namespace that was there. */
export function servedLedger(store: Store, guards: NamespaceGuards): ServedLedger {
  const noticingLoss = async <T>(namespace: string, request: () => Promise<T>): Promise<T> => {
    try {
      return await request();
    } catch (error) {
      const isMissing = error instanceof CoordinatorError && error.code === "namespace_not_found";
      if (isMissing) await (await guards.of(namespace)).readRecord();
      throw error;
    }
  };
  return {
    readNamespace: (namespace) => noticingLoss(namespace, () => store.readNamespace(namespace)),
    // Need no record.
    leases: (namespace, query) => store.leases(namespace, query),
    hasHolder: (namespace, name) => store.hasHolder(namespace, name),
    setProgress: (namespace, lease, progress) => store.setProgress(namespace, lease, progress),
    readRetention: (namespace) => store.readRetention(namespace),
  };
}
