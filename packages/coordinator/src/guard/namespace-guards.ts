/**
 * The guards of all namespaces that a coordinator serves: each is made when it is first asked for, and kept from then on.
 * Knows nothing of who asks.
 */

import { CoordinatorError } from "../errors.js";
import { msSince } from "../log.js";
import type { CheckpointFile } from "./checkpoint.js";
import { activeSince, type GuardState, nextState } from "./guard-state.js";
import { NamespaceGuard, type NamespaceGuardOptions } from "./namespace-guard.js";

type GuardOptions = Omit<NamespaceGuardOptions, "namespace" | "witness"> & {
  /** Names that a witness remembers, and that the store may have lost. */
  readonly remembered: ReadonlySet<string>;
};

/** A namespace that is served, and that no guard could be made for yet. */
export interface RefusedNamespace {
  readonly namespace: string;
  readonly guard: GuardState;
}

export class NamespaceGuards {
  readonly #options: GuardOptions;
  readonly #checkpointFileOf: (namespace: string) => CheckpointFile;
  readonly #guards = new Map<string, Promise<NamespaceGuard>>();
  readonly #refused = new Map<string, GuardState>();

  constructor(options: GuardOptions, checkpointFileOf: (namespace: string) => CheckpointFile) {
    this.#options = options;
    this.#checkpointFileOf = checkpointFileOf;
  }

  /**
   * The guard is kept once it knows its store; before that every request may find out anew.
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

  /** Undefined for a namespace without a record: a name may outlive it, or stand before it. */
  async ifMade(namespace: string): Promise<NamespaceGuard | undefined> {
    try {
      return await this.of(namespace);
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === "namespace_not_initialised") return undefined;
      throw error;
    }
  }

  /**
   * Those that the store lists, and those that it held before it was namespaceLost. A name that is only asked for is none: anybody may
   * invent one. @throws CoordinatorError `store_unavailable`.
   */
  async names(): Promise<ReadonlySet<string>> {
    const { store, remembered } = this.#options;
    return new Set([...(await store.listNamespaces()), ...(await this.#openedNames()), ...remembered]);
  }

  /** Those for which the last touch found no guard, and why. */
  refused(): readonly RefusedNamespace[] {
    return [...this.#refused].map(([namespace, guard]) => ({ namespace, guard }));
  }

  /** Those that know their store by now, without asking it. */
  async opened(): Promise<readonly NamespaceGuard[]> {
    const guards = await Promise.all([...this.#guards.values()].map(ifOpened));
    return guards.filter((guard) => guard !== undefined);
  }

  /** Touches the record of every namespace; never rejects. */
  async heartbeatAll(): Promise<void> {
    const tell = (error: Error) => this.#options.log.warn({ reason: error.message }, "touch_failed");
    // In a Cluster the list lies on one node, and what it lists on others: they are touched, too, when that node is gone.
    const namespaces = await this.names().catch(async (error: Error) => {
      tell(error);
      return await this.#openedNames();
    });
    await Promise.all([...namespaces].map((namespace) => this.#touch(namespace))).catch(tell);
  }

  /** Lets go of the witnesses. @throws CoordinatorError `witness_unusable`, once every one was closed. */
  async close(): Promise<void> {
    const guards = (await Promise.allSettled(this.#guards.values())).filter(({ status }) => status === "fulfilled");
    const closings = guards.map(async (guard) => (guard as PromiseFulfilledResult<NamespaceGuard>).value.close());
    for (const closing of await Promise.allSettled(closings)) if (closing.status === "rejected") throw closing.reason;
  }

  async #openedNames(): Promise<readonly string[]> {
    return (await this.opened()).map(({ namespace }) => namespace);
  }

  /** A refusal is kept as the state of the guard, or here where there is none yet, and logged when it changes. */
  async #touch(namespace: string): Promise<void> {
    const { log } = this.#options;
    let guard: NamespaceGuard | undefined;
    try {
      guard = await this.of(namespace);
      this.#refused.delete(namespace);
      const startedMs = performance.now();
      await guard.touch();
      log.debug({ namespace, durationMs: msSince(startedMs) }, "touch");
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      log.debug({ namespace, code: error.code, reason: error.message }, "touch_refused");
      if (guard === undefined) this.#noteRefused(namespace, error);
    }
  }

  #noteRefused(namespace: string, error: CoordinatorError): void {
    const { log, now } = this.#options;
    const before = this.#refused.get(namespace);
    if (error.code === "namespace_not_initialised") {
      this.#refused.delete(namespace);
      return;
    }
    const state = nextState(error, before ?? activeSince(now()), now());
    this.#refused.set(namespace, state);
    const { code, explanation } = state;
    if (code !== before?.code) log.warn({ namespace, code, explanation }, state.state);
  }

  async #open(namespace: string): Promise<NamespaceGuard> {
    const witness = this.#checkpointFileOf(namespace);
    try {
      return await NamespaceGuard.open({ ...this.#options, namespace, witness });
    } catch (error) {
      witness.close();
      throw error;
    }
  }
}

/** One that is still being opened waits for the store: nobody else should. */
async function ifOpened(opening: Promise<NamespaceGuard>): Promise<NamespaceGuard | undefined> {
  return await Promise.race([opening.catch(() => undefined), Promise.resolve().then(() => undefined)]);
}
