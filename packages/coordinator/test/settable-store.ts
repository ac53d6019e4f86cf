/**
 * A store in memory whose server, clock and past are set by hand: for what a guard does when a store forgets, is restarted,
 * answers for another, or is not alone. It decides as every store does; reports and the ledger are not its business.
 */
import { type ObservedServer } from "../src/guard/checks.js";
import { decide } from "../src/guard/decide.js";
import { type StoredFields, storedFields } from "../src/guard/record.js";
import { isRefusal, namespaceNotFound, refused } from "../src/guard/refusals.js";
import {
  type Finding,
  type NamespaceRecord,
  NO_RETENTION,
  type Outcome,
  type Retention,
  type StepCommand,
  type Store,
} from "../src/stores/store.js";
import { namespaceRecordIn, recordAfter } from "../src/stores/stored-shapes.js";
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
  /** The steps that were asked for, in their order. */
  readonly steps: StepCommand[] = [];
  /** Changes what is answered, after it was done. */
  alter: (outcome: Outcome, command: StepCommand) => Outcome = (outcome) => outcome;
  /** Before each step. */
  before: (command: StepCommand) => unknown = () => {};
  #records = new Map<string, StoredFields>();

  constructor(private readonly clock: Clock) {}

  async step(namespace: string, command: StepCommand): Promise<Outcome> {
    this.steps.push(command);
    await this.before(command);
    const fields = this.#records.get(namespace);
    const keys = {
      record: fields === undefined ? "none" : "hash",
      fields: fields ?? {},
      expires: this.expires,
      ledger: "none",
      ledgerMark: 0,
      holders: "none",
    } as const;
    const { timeMs } = this.clock;
    const server = { ...this.server, timeMs };
    const written = decide({ namespace, keys, server, nowMs: timeMs - this.behindMs, bounds: SHORT_BOUNDS }, command);
    if (isRefusal(written)) throw refused(written.code, written.detail, namespace);
    this.#records.set(namespace, storedFields(written.record));
    const after = recordAfter(written.record, command.nonce);
    const { role, epoch } = this.server;
    const check = { nonce: command.nonce, role, epoch, generation: after.generation };
    return this.alter({ after, runCount: written.runCount, acknowledgedCount: this.acknowledgedCount, check }, command);
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    const fields = this.#records.get(namespace);
    if (fields === undefined) throw namespaceNotFound(namespace);
    return namespaceRecordIn(fields, namespace);
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

  report = keepsNoLedger;
  leases = keepsNoLedger;
  importLeases = keepsNoLedger;
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
