/**
 * A store in memory whose server, clock and past are set by hand: for what a guard does when a store forgets, is restarted,
 * answers for another, or is not alone. It compares and writes as every store does; reports and the ledger are not its business.
 */

import type { ObservedServer } from "../src/guard/checks.js";
import { namespaceRecordIn } from "../src/guard/checks.js";
import type { Bounds } from "../src/guard/clocks.js";
import type { StepCommand } from "../src/guard/commands.js";
import { decide } from "../src/guard/decide.js";
import type { ReplaceableBounds } from "../src/guard/namespace-steps.js";
import { type NamespaceRecord, type StoredFields, storedFields } from "../src/guard/record.js";
import {
  type Applied,
  type Change,
  type Expected,
  type Finding,
  type Observed,
  recordToWrite,
} from "../src/guard/step-store.js";
import { NO_RETENTION, type Retention, type Store } from "../src/stores/store.js";
import { SHORT_BOUNDS } from "./commands-for-test.js";

/** One clock for all, which runs when a caller waits for it. */
export class Clock {
  timeMs = Date.now();
  readonly now = () => this.timeMs;
  /** What is to happen while a caller waits. */
  meanwhile: () => Promise<unknown> = async () => {};
  readonly pause = async (pauseMs: number) => {
    this.timeMs += Math.ceil(pauseMs);
    await this.meanwhile();
  };
}

export class SettableStore implements Store {
  readonly kind = "settable";
  readonly bounds = SHORT_BOUNDS;
  isExclusive = false;
  readonly server: Omit<ObservedServer, "timeMs"> & { epoch: string } = {
    role: "master",
    epoch: "first:life:0",
    connectedReplicas: 0,
  };
  /** Whether each record has a time to live. */
  expires = false;
  /** How far the coordinator's clock is behind the store's, ms. */
  behindMs = 0;
  acknowledgedCount = 0;
  /** The steps that were asked for, in their order; those of guards with `boundsOf`. */
  readonly steps: StepCommand[] = [];
  /** Changes what is answered, after it was done. */
  alter: (applied: Applied, command: StepCommand | undefined) => Applied = (applied) => applied;
  /** Before each step of guards with `boundsOf` that is about to be done. */
  before: (command: StepCommand) => unknown = () => {};
  #records = new Map<string, StoredFields>();
  /** A step may be decided more than once. */
  readonly #asked = new WeakSet<StepCommand>();
  #decided: StepCommand | undefined;

  constructor(private readonly clock: Clock) {}

  /** For a guard whose steps are noted here. */
  boundsOf(bounds: Bounds = SHORT_BOUNDS): ReplaceableBounds {
    return {
      ...bounds,
      decide: (context, command) => {
        if (!this.#asked.has(command)) this.steps.push(command);
        this.#asked.add(command);
        this.#decided = command;
        return decide(context, command);
      },
    };
  }

  async read(namespace: string): Promise<Observed> {
    const fields = this.#records.get(namespace);
    const keys = {
      record: fields === undefined ? "none" : "hash",
      fields: fields ?? {},
      expires: this.expires,
      ledger: "none",
      ledgerMark: 0,
      holders: "none",
    } as const;
    return { keys, server: { ...this.server, timeMs: this.clock.timeMs } };
  }

  async apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed> {
    const command = this.#decided;
    this.#decided = undefined;
    if (command !== undefined) await this.before(command);
    const found = await this.read(namespace);
    const { found: seen } = expected;
    // No ledger is kept: none is missed.
    const ledgerless = {
      ...expected,
      found: { ...seen, keys: { ...seen.keys, ledger: "none", holders: "none" } as const },
    };
    const record = recordToWrite(found, ledgerless, change);
    if (record === undefined) return found;
    this.#records.set(namespace, storedFields(record));
    const { role, epoch } = this.server;
    const { highWaterMark, changedAtMs, generation, nodeCount } = record;
    const check = nodeCount === 1 ? undefined : { role, epoch, generation };
    const { acknowledgedCount } = this;
    return this.alter({ highWaterMark, changedAtMs, acknowledgedCount, check, movedAside: [] }, command);
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    return namespaceRecordIn(await this.read(namespace), namespace);
  }

  async listNamespaces(): Promise<readonly string[]> {
    return [...this.#records.keys()];
  }

  /** As it is now, for `restore`. */
  backup(): ReadonlyMap<string, StoredFields> {
    return new Map(this.#records);
  }

  restore(backup: ReadonlyMap<string, StoredFields>): void {
    this.#records = new Map(backup);
  }

  /** The names of the steps since this was asked last. */
  stepNames(): string[] {
    return this.steps.splice(0).map(({ step }) => step);
  }

  setProgress = keepsNoLedger;
  leases = keepsNoLedger;
  hasHolder = keepsNoLedger;
  appendLeases = keepsNoLedger;
  async readRetention(): Promise<Retention> {
    return NO_RETENTION;
  }
  setRetentionDays = keepsNoLedger;
  trimLedger = keepsNoLedger;
  async preflight(): Promise<readonly Finding[]> {
    return [];
  }
  async close(): Promise<void> {}
}

function keepsNoLedger(): never {
  throw new Error("a settable store keeps no ledger");
}
