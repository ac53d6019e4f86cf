/**
 * The rules of leasing: to whom, how many, and when to refuse; and what is known of a run afterwards.
 * Knows the store only through `Store`, and nothing of HTTP.
 * Keeps nothing whose loss could repeat a run: two coordinators on one store are as safe as one.
 */
import {
  CallNumberError,
  decodeCallNumber,
  RUN_COUNT,
  RUN_MAX,
  SEQUENCE_MAX,
  VERSION_COUNT,
} from "@callnumber/protocol/codec";
import type {
  InspectAnswer,
  Lease,
  LeaseRequest,
  ReportRequest,
  RunAnswer,
  RunsAnswer,
  StatusAnswer,
} from "@callnumber/protocol/wire";
import {
  LEASE_RUN_COUNT_MAX,
  ledgerIdOf,
  NAMESPACE_PATTERN,
  NONCE_PATTERN,
  runOfLedgerId,
} from "@callnumber/protocol/wire";
import { CoordinatorError } from "./errors.js";
import { inspectLeased, inspectMalformed, inspectNeverLeased, inspectOtherVersion } from "./inspection.js";
import { type LedgerQuery, ledgerPage } from "./ledger-page.js";
import { type Log, SILENT_LOG } from "./log.js";
import { notLeased } from "./refusals.js";
import { runStateIn } from "./run-state.js";
import { rateWindowsMsOf, statusOf } from "./status.js";
import type { GrantedRuns, NamespaceRecord, Store } from "./store.js";
import { newStoreId, RATE_DEFAULT } from "./store-id.js";

export interface CoordinatorOptions {
  readonly store: Store;
  /** How this coordinator is called in the ledger. */
  readonly name: string;
  readonly log?: Log;
  /** The clock, in milliseconds. */
  readonly now?: () => number;
}

const STATES: ReadonlySet<string> = new Set<ReportRequest["state"]>(["open", "exhausted", "closed"]);

interface Seen {
  readonly storeId: string;
  /** The greatest ledger id known to be leased. */
  readonly ledgerId: number;
}

export class Coordinator {
  readonly name: string;
  readonly #store: Store;
  readonly #log: Log;
  readonly #now: () => number;
  /** What this coordinator knows of each namespace. Losing it loses a warning, nothing else. */
  readonly #seen = new Map<string, Seen>();

  constructor({ store, name, log = SILENT_LOG, now = Date.now }: CoordinatorOptions) {
    this.name = name;
    this.#store = store;
    this.#log = log;
    this.#now = now;
  }

  /**
   * Makes a namespace that leases from `firstRun` (1 to 2^30 - 1, default 1) upwards. Give an archive that already holds
   * numbers a first run above all of them.
   * @throws RangeError or TypeError for a bad name or run. CoordinatorError `namespace_already_initialised`.
   */
  async initNamespace(
    namespace: string,
    { firstRun = 1 }: { readonly firstRun?: number } = {},
  ): Promise<NamespaceRecord> {
    mustBeNamespace(namespace);
    mustBeWithin("firstRun", firstRun, 1, RUN_MAX);
    const storeId = newStoreId({ firstRun, initialisedAtMs: this.#now(), rate: RATE_DEFAULT });
    const record = await this.#store.createNamespace(namespace, storeId);
    this.#log.info({ namespace, storeId, firstRun }, "init");
    return record;
  }

  /**
   * Leases 1 to 64 fresh, contiguous runs; fewer than asked at the end of the run space.
   * A run is never leased twice. If this rejects, runs may already be burnt; they are never given to anyone else.
   * @throws CoordinatorError `run_beyond_mark`, `run_space_exhausted`, `namespace_not_initialised`: the mark did not
   *   move. `store_went_back`, `store_replaced`: what it moved by is burnt. `store_unavailable`: it may have moved.
   *   RangeError or TypeError for misuse.
   */
  async lease(namespace: string, request: LeaseRequest): Promise<Lease> {
    mustBeNamespace(namespace);
    mustBeWithin("runCount", request.runCount, 1, LEASE_RUN_COUNT_MAX);
    const { runCount, nonce, holder, lastRun } = request;
    mustBeNonce(nonce);
    if (typeof holder !== "object" || holder === null)
      throw new TypeError("a lease needs a holder: { name, host, pid, labels }");
    if (lastRun !== null) await this.#mustBeKnown(namespace, lastRun, request);
    const floor = this.#greatestSeen(namespace);
    const granted = await this.#store.lease(namespace, { runCount, floor, holder, coordinator: this.name, nonce });
    this.#mustBeFresh(namespace, granted);
    this.#log.info({ namespace, ...granted, nonce, holder }, "lease");
    return { namespace, ...granted, nonce };
  }

  /**
   * Notes how far a holder got in a run, named by its ledger id.
   * @throws CoordinatorError `run_not_leased`, `not_the_holder`.
   */
  async report(namespace: string, ledgerId: number, { nonce, lastSequence, state }: ReportRequest): Promise<void> {
    mustBeLedgerId(ledgerId);
    mustBeNamespace(namespace);
    mustBeNonce(nonce);
    if (lastSequence !== null) mustBeWithin("lastSequence", lastSequence, 0, SEQUENCE_MAX);
    if (!STATES.has(state))
      throw new TypeError(`a run's state is open, exhausted or closed, not ${JSON.stringify(state)}`);
    await this.#store.report(namespace, ledgerId, { nonce, lastSequence, state });
    this.#log.debug({ namespace, ...runOfLedgerId(ledgerId), lastSequence, state }, "report");
  }

  /** What is known of one run. @throws CoordinatorError `run_not_leased`, `namespace_not_initialised`. */
  async run(namespace: string, ledgerId: number): Promise<RunAnswer> {
    mustBeLedgerId(ledgerId);
    mustBeNamespace(namespace);
    const lease = await this.#store.findLease(namespace, ledgerId);
    if (lease === undefined) throw notLeased(namespace, ledgerId);
    const { version, run } = runOfLedgerId(ledgerId);
    return { namespace, version, run, ...runStateIn(lease, run), lease };
  }

  /** Leases, newest first, a page at a time. @throws CoordinatorError `namespace_not_initialised`. */
  async runs(namespace: string, query: LedgerQuery): Promise<RunsAnswer> {
    mustBeNamespace(namespace);
    return { namespace, ...(await ledgerPage(this.#store, namespace, query)) };
  }

  /** What a text that claims to be a call number stands for. @throws CoordinatorError `namespace_not_initialised`. */
  async inspect(namespace: string, text: string): Promise<InspectAnswer> {
    mustBeNamespace(namespace);
    const record = await this.#store.readNamespace(namespace);
    const subject = { namespace, callNumber: text };
    try {
      const fields = decodeCallNumber(text);
      if (fields.version > record.version) return inspectOtherVersion({ ...subject, ...fields }, record);
      const lease = await this.#store.findLease(namespace, ledgerIdOf(fields.version, fields.run));
      if (lease === undefined) return inspectNeverLeased({ ...subject, ...fields }, record);
      return inspectLeased({ ...subject, ...fields }, lease);
    } catch (error) {
      if (error instanceof CallNumberError) return inspectMalformed(subject, error);
      throw error;
    }
  }

  /** Mark, what is left, how fast it goes. @throws CoordinatorError `namespace_not_initialised`. */
  async status(namespace: string): Promise<StatusAnswer> {
    mustBeNamespace(namespace);
    const nowMs = this.#now();
    const record = await this.#store.readNamespace(namespace);
    const windows = await Promise.all(
      rateWindowsMsOf(record, nowMs).map(async (windowMs) => {
        return { windowMs, oldest: await this.#store.firstLeaseSince(namespace, nowMs - windowMs) };
      }),
    );
    return { ...statusOf(record, windows, nowMs), store: this.#store.kind, coordinator: this.name };
  }

  /**
   * Whether leases can be expected to succeed: resolves to the namespaces that are served.
   * @throws CoordinatorError `namespace_not_initialised` when there is none; whatever the store says of one of them.
   */
  async mustBeReady(): Promise<readonly string[]> {
    const served: string[] = [];
    for (const namespace of await this.#store.listNamespaces()) {
      if (await this.#hasRecord(namespace)) served.push(namespace);
    }
    if (served.length > 0) return served;
    throw new CoordinatorError(
      "namespace_not_initialised",
      'the store holds no namespace yet; make one with "callnumber init --store …"',
    );
  }

  /** A name may outlive its record, or stand before it. */
  async #hasRecord(namespace: string): Promise<boolean> {
    try {
      await this.#store.readNamespace(namespace);
      return true;
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === "namespace_not_initialised") return false;
      throw error;
    }
  }

  /** A holder that has a run which this store never leased met another store, or this one before it went back. */
  async #mustBeKnown(namespace: string, lastRun: number, { holder }: LeaseRequest): Promise<void> {
    if (lastRun <= this.#greatestSeen(namespace)) return;
    const { version, highWaterMark } = await this.#store.readNamespace(namespace);
    const mark = ledgerIdOf(version, highWaterMark);
    if (lastRun <= mark) return;
    this.#log.warn({ namespace, mark, lastRun, holder }, "run_beyond_mark");
    throw new CoordinatorError(
      "run_beyond_mark",
      `the last run held is ${lastRun}, but this store's last one is ${mark}: the store has gone back in time, or is another one. ` +
        "Nothing was leased. Stop the importers and tell the operator",
    );
  }

  /** The last look before runs leave the house; what fails it is burnt. Compared with what is known now, not when it was asked. */
  #mustBeFresh(namespace: string, { storeId, version, firstRun, runCount }: GrantedRuns): void {
    const first = ledgerIdOf(version, firstRun);
    const seen = this.#seen.get(namespace);
    if (seen !== undefined && seen.storeId !== storeId) {
      throw new CoordinatorError(
        "store_replaced",
        `the runs of namespace "${namespace}" came from store ${seen.storeId}, and now from ${storeId}; they were burnt. ` +
          "Somebody put another store in its place. Bring the right one back, then start this coordinator again",
      );
    }
    if (seen !== undefined && first <= seen.ledgerId) {
      throw new CoordinatorError(
        "store_went_back",
        `the store granted run ${first} of namespace "${namespace}", but run ${seen.ledgerId} was leased already; it was burnt. ` +
          "Stop the coordinators and bring the newest state of the store back",
      );
    }
    this.#seen.set(namespace, { storeId, ledgerId: first + runCount - 1 });
  }

  #greatestSeen(namespace: string): number {
    return this.#seen.get(namespace)?.ledgerId ?? 0;
  }
}

function mustBeNamespace(namespace: string): void {
  if (!NAMESPACE_PATTERN.test(namespace)) {
    throw new TypeError(
      `a namespace has 1 to 63 characters a-z, 0-9, dot, dash, underscore, and starts with a letter or digit, not ${JSON.stringify(namespace)}`,
    );
  }
}

function mustBeNonce(nonce: string): void {
  if (typeof nonce !== "string" || !NONCE_PATTERN.test(nonce)) {
    throw new TypeError(
      `a nonce has 16 to 64 characters A-Z, a-z, 0-9, dash, underscore, not ${JSON.stringify(nonce)}`,
    );
  }
}

function mustBeLedgerId(ledgerId: number): void {
  mustBeWithin("run", ledgerId, 0, VERSION_COUNT * RUN_COUNT - 1);
}

function mustBeWithin(name: string, value: number, min: number, max: number): void {
  if (!(Number.isInteger(value) && value >= min && value <= max)) {
    throw new RangeError(`${name} must be a whole number from ${min} to ${max}, not ${String(value)}`);
  }
}
