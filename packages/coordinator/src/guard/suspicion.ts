/**
 * Remembers that a node was seen which the record does not count. It may be promoted, and then lease what this store leases, when nothing of it is
 * seen here any more. Where one node is counted, no quorum prevents that; so leasing ends until `recover`, for all coordinators, by the record, and
 * for those with this directory, by its file, also where the record can't be written, or is put back.
 * Guarantees: G8 (docs/guarantees.md).
 */
import type { CoordinatorError } from "../errors.js";
import type { Store } from "../stores/store.js";
import type { GuardMemory } from "./checkpoint.js";
import type { StepCommand } from "./commands.js";
import type { NamespaceSteps } from "./namespace-steps.js";

interface SuspicionOptions {
  readonly store: Pick<Store, "readNamespace">;
  readonly namespace: string;
  readonly pause: (pauseMs: number) => Promise<void>;
}

/** A logical subscriber that ends looks like a standby for an instant. */
const LOOK_AGAIN_MS = 100;

export class Suspicion {
  readonly #options: SuspicionOptions;
  readonly #steps: NamespaceSteps;
  readonly #memory: GuardMemory;
  /** However many steps were refused, there is one. */
  #keeping: Promise<void> | undefined;

  constructor(options: SuspicionOptions, steps: NamespaceSteps, memory: GuardMemory) {
    this.#options = options;
    this.#steps = steps;
    this.#memory = memory;
  }

  /** After a step that failed. Every error but those that concern such a node is left alone. Never rejects: the step's error is the better one. */
  async noteRefusal(error: unknown, step: StepCommand["step"]): Promise<void> {
    const { code } = error as CoordinatorError;
    const isAttached = code === "unexpected_replicas";
    // The record may have a node that only others saw, the server may show one that was there, or the record may not have what is noted.
    const isPerhapsSeen = code === "manual_recovery_required" && (step === "heartbeat" || !this.#memory.hasUncounted);
    if (!isAttached && !isPerhapsSeen) return;
    this.#keeping ??= this.#keep(isAttached).finally(() => {
      this.#keeping = undefined;
    });
    await this.#keeping;
  }

  async #keep(isAttached: boolean): Promise<void> {
    if (isAttached) await this.#options.pause(LOOK_AGAIN_MS);
    // Read before the second look: `recover` may write the record meanwhile, and what it wrote must not be held against it.
    const generation = await this.#generation();
    const refusal = this.#steps.refusalOf({ step: "suspect", ...this.#memory.base });
    // Where nothing can be asked, the first look counts.
    const isSeen = await refusal.then(
      (cause) => cause === undefined,
      () => isAttached,
    );
    if (!isSeen) return;
    // First, since the record may be locked, and this process may end meanwhile. Where one of the two fails, the next heartbeat tries again.
    this.#memory.noteUncounted(generation);
    await this.#steps.do({ step: "suspect", ...this.#memory.base }).then(
      ({ after }) => this.#memory.noteUncounted(after.generation),
      () => {},
    );
  }

  /** Of the record, whose last recovery this process need not know; 0 where it can't be read. */
  async #generation(): Promise<number> {
    const { store, namespace } = this.#options;
    return await store.readNamespace(namespace).then(
      ({ generation }) => generation,
      () => 0,
    );
  }
}
