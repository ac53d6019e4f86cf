/**
 * The rules of leasing: who may lease how many runs and when, and what is known of a run afterwards.
 * Knows the store only through `Store`, and nothing about HTTP.
 * Keeps nothing whose loss could repeat a run: two coordinators on one store are as safe as one.
 * Guarantees: G6 (docs/guarantees.md).
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  type Holder,
  type Lease,
  type LeaseRequest,
  type NamedRun,
  type ReportRequest,
  runOfLedgerId,
} from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import type {
  Alarm,
  InspectResponse,
  NamespaceDescription,
  RunResponse,
  RunsResponse,
  StatusResponse,
} from "@callnumber/protocol/schemas";
import { CoordinatorError } from "./errors.js";
import { type CheckpointFile, NO_CHECKPOINT_FILE } from "./guard/checkpoint.js";
import { type Bounds, DEFAULT_BOUNDS } from "./guard/clocks.js";
import { whyMissing } from "./guard/guard-state.js";
import { newProofKey } from "./guard/lease-proof.js";
import { NamespaceGuards, type ServedLedger, servedLedger } from "./guard/namespace-guards.js";
import { doStep } from "./guard/namespace-steps.js";
import { PREFLIGHT_EVERY_MS, PreflightWatch } from "./guard/preflight.js";
import type { StepSignal } from "./guard/queued-steps.js";
import { type NamespaceRecord, NODE_COUNT_MAX } from "./guard/record.js";
import type { Finding } from "./guard/step-store.js";
import { newStoreId, RATE_DEFAULT, RATE_MAX } from "./guard/store-id.js";
import { recordDiscarded } from "./guard/verify-outcome.js";
import { callNumberCanExist, type InspectOptions, inspectCallNumber } from "./inspect/inspect.js";
import { recordReport } from "./ledger/ledger-changes.js";
import {
  type ExportStep,
  exportedSteps,
  type LedgerFilter,
  type LedgerQuery,
  newestLease,
} from "./ledger/read-ledger.js";
import { namedLedgerId, readRun, readRuns } from "./ledger/read-runs.js";
import type { StartLoop } from "./limits/restart-brake.js";
import { type Log, msSince, SILENT_LOG } from "./log.js";
import { CapacityReader } from "./status/capacity-reader.js";
import {
  describeNamespace,
  type Observation,
  observe,
  type Readiness,
  readinessOf,
  type StatusSources,
  statusOf,
  storeProbe,
} from "./status/status.js";
import { type Store } from "./stores/store.js";
import { assertLeaseRequest, assertLedgerId, assertNamespace, assertReport, assertWithin } from "./validate.js";

/** What a coordinator is made of; all but store and name have a default. */
export interface CoordinatorOptions {
  readonly store: Store;
  /** The name of this coordinator in the ledger. */
  readonly name: string;
  readonly log?: Log;
  /** Returns the holders of a namespace that restart repeatedly, for the alarms. Default: none. */
  readonly startLoops?: (namespace: string) => readonly StartLoop[];
  /** Returns the alarms about this process, as `ProcessAlarms.all` does. Default: none. */
  readonly processAlarms?: () => readonly Alarm[];
  /** The clock, in milliseconds. */
  readonly now?: () => number;
  /** The bounds of the guard; others than the default are for tests. */
  readonly bounds?: Bounds;
  /** Opens the checkpoint file of a namespace, outside the store. Default: none, which loses a warning. */
  readonly checkpointFileOf?: (namespace: string) => CheckpointFile;
  /** Namespaces with a checkpoint, also those that the store has lost: they are reported. Default: none. */
  readonly checkpointedNamespaces?: ReadonlySet<string>;
  /** Names of preflight findings (`Finding.override`) that an operator accepts. Default: none. */
  readonly overrides?: readonly string[];
  /** How often the store's servers are checked, ms. Default 60,000. */
  readonly preflightEveryMs?: number;
  /** Waits, and randomizes waiting; for simulations. */
  readonly pause?: (pauseMs: number) => Promise<void>;
  readonly random?: () => number;
}

export interface LeaseOptions {
  /** Id of the request's token, for ledger and log; null or undefined without authentication. */
  readonly tokenId?: string | null;
  /** Looked at before the step: an aborted request leases nothing. Once the step is sent, it has no effect. */
  readonly signal?: StepSignal | undefined;
}

export interface InitOptions {
  /** 0 to 7, default 0, and 1 to 2^30 - 1, default 1. Give an archive that already holds numbers a first run above all of them. */
  readonly firstVersion?: number;
  readonly firstRun?: number;
  /** By how many runs a second the run ceiling rises, 1 to 16, default 2. Never changes. */
  readonly rate?: number;
  /** How many data nodes could be promoted, 1 to 99, default 1. */
  readonly nodeCount?: number;
}

/** Leases the runs of one store, and answers what is known of them. It has the shape of the client's `LeaseSource`. */
export class Coordinator {
  readonly name: string;
  readonly storeKind: string;
  /** Use and forecast, for operators. */
  readonly capacity: CapacityReader;
  readonly #store: Store;
  readonly #log: Log;
  readonly #clock: { readonly now: () => number; readonly bounds: Bounds };
  readonly #checkpointFileOf: (namespace: string) => CheckpointFile;
  readonly #guards: NamespaceGuards;
  readonly #ledger: ServedLedger;
  readonly #preflight: PreflightWatch;
  readonly #isStoreUp: () => Promise<boolean>;
  #heartbeatTimer: ReturnType<typeof setInterval> | undefined;
  #heartbeat: Promise<void> = Promise.resolve();

  constructor({
    store,
    name,
    log = SILENT_LOG,
    startLoops = () => [],
    processAlarms = () => [],
    now = Date.now,
    bounds = DEFAULT_BOUNDS,
    checkpointFileOf = () => NO_CHECKPOINT_FILE,
    checkpointedNamespaces = new Set(),
    overrides = [],
    preflightEveryMs = PREFLIGHT_EVERY_MS,
    pause = async (pauseMs) => void (await delay(pauseMs)),
    random = Math.random,
  }: CoordinatorOptions) {
    this.name = name;
    this.storeKind = store.kind;
    this.#store = store;
    this.#log = log;
    this.#clock = { now, bounds };
    this.#checkpointFileOf = checkpointFileOf;
    const guarded = { store, coordinator: name, bounds, now, log, pause, random, checkpointed: checkpointedNamespaces };
    this.#guards = new NamespaceGuards(guarded, checkpointFileOf);
    this.#ledger = servedLedger(store, this.#guards);
    this.#preflight = new PreflightWatch({ store, log, now, overrides, everyMs: preflightEveryMs });
    this.#isStoreUp = storeProbe(store);
    const namespaces = () => this.#guards.names();
    const read = (namespace: string) => this.#read(namespace);
    this.capacity = new CapacityReader({ ledger: this.#ledger, log, now, namespaces, startLoops, processAlarms, read });
  }

  /** Returns what stops leasing on the store's servers, or is unwise, as far as its user may see it. Never rejects for an unreachable store. */
  findings(): Promise<readonly Finding[]> {
    return this.#preflight.findings();
  }

  /**
   * Makes a namespace: once, before its first lease.
   * @throws RangeError or TypeError for a bad name or number. CoordinatorError `namespace_exists`;
   *   `namespace_lost` or `namespace_moved` when it has a checkpoint here; `quorum_missing` with too few replicas; all that a lease fails with.
   */
  async initNamespace(
    namespace: string,
    { firstVersion = 0, firstRun = 1, rate = RATE_DEFAULT, nodeCount = 1 }: InitOptions = {},
  ): Promise<NamespaceRecord> {
    assertNamespace(namespace);
    assertWithin("firstVersion", firstVersion, 0, VERSION_MAX);
    assertWithin("firstRun", firstRun, 1, RUN_MAX);
    assertWithin("rate", rate, 1, RATE_MAX);
    assertWithin("nodeCount", nodeCount, 1, NODE_COUNT_MAX);
    const checkpointFile = this.#checkpointFileOf(namespace);
    const lost = whyMissing(namespace, checkpointFile);
    checkpointFile.close();
    if (lost !== undefined && (await this.#store.read(namespace)).keys.record === "none") throw lost;
    await this.#preflight.assertFitFor({ namespace, nodeCount });
    const storeId = newStoreId({ firstVersion, firstRun, initializedAtMs: this.#clock.now(), rate });
    const init = { step: "init", storeId, isSilenceAccepted: false, nodeCount, proofKey: newProofKey() } as const;
    await doStep(this.#store, namespace, init, this.#clock);
    this.#log.info({ namespace, storeId, firstVersion, firstRun, rate, nodeCount }, "init");
    return await this.#store.readNamespace(namespace);
  }

  /**
   * Leases 1 to 64 fresh, contiguous runs; fewer than requested when the run space or the headroom below the run ceiling is scarce.
   * A run is never leased twice. If this rejects, runs may already be discarded; no other holder gets them.
   * The report of a request is recorded in the background, and logged if that fails.
   * @throws CoordinatorError: every refusal of docs/reference/errors.md. RangeError or TypeError for misuse.
   */
  async lease(namespace: string, request: LeaseRequest, options: LeaseOptions = {}): Promise<Lease> {
    const startedMs = performance.now();
    assertNamespace(namespace);
    assertLeaseRequest(request);
    const { runCount, nonce, holder, lastRun, proof, sentAtMs, spareRunCount, report } = request;
    this.#assertClock(namespace, sentAtMs, holder);
    await this.#preflight.assertPassed(namespace);
    const guard = await this.#guards.of(namespace);
    const { signal } = options;
    signal?.throwIfAborted();
    const tokenId = options.tokenId ?? undefined;
    const asked = { runCount, holder, coordinator: this.name, tokenId, leaseNonce: nonce, lastRun, proof, signal };
    const granting = guard.lease(asked);
    if (report) {
      this.report(namespace, report.run, report).catch(({ message: reason }: Error) => {
        this.#log.debug({ namespace, ...runOfLedgerId(report.run), reason }, "report_not_recorded");
      });
    }
    const { storeId, version, firstRun, leasedAtMs, ...granted } = await granting;
    const lease = { namespace, storeId, version, firstRun, runCount: granted.runCount, leasedAtMs, nonce };
    this.#log.info({ ...lease, holder, tokenId, spareRunCount, durationMs: msSince(startedMs) }, "lease");
    return { ...lease, proof: granted.proof };
  }

  /**
   * Writes a heartbeat into the record of every namespace that is served, now and every `heartbeatEveryMs`, until `stopHeartbeat`: no gap arises,
   * and a namespace is recovered before a request waits for it. Also checks the store's servers, first and each minute, and the alarms.
   */
  startHeartbeat(): void {
    this.#preflight.start();
    this.capacity.start();
    const beat = () => {
      this.#heartbeat = this.#guards.heartbeatAll();
    };
    this.#heartbeatTimer ??= setInterval(beat, this.#clock.bounds.heartbeatEveryMs);
    beat();
  }

  /** Ends the heartbeat, and closes the checkpoint files. The caller closes the store. */
  async stopHeartbeat(): Promise<void> {
    clearInterval(this.#heartbeatTimer);
    this.#heartbeatTimer = undefined;
    await Promise.all([this.#heartbeat, this.#preflight.stop(), this.capacity.stop()]);
    await this.#guards.close();
  }

  /** Records, if the store accepts it, that nothing of a lease was handed out: only for one that can't have left this process. */
  discard({ namespace, ...lease }: Lease, reason: string): void {
    recordDiscarded({ store: this.#store, log: this.#log, namespace }, lease, reason);
  }

  /**
   * Records how far a holder got in a run, which is given by its ledger id.
   * @throws CoordinatorError `run_not_leased`, `holder_mismatch`, `report_expired`.
   */
  async report(namespace: string, ledgerId: number, { nonce, lastSequence, state }: ReportRequest): Promise<void> {
    assertNamespace(namespace);
    assertReport(ledgerId, { nonce, lastSequence, state });
    await recordReport(this.#ledger, namespace, ledgerId, { nonce, lastSequence, state }, this.#clock.now);
    this.#log.debug({ namespace, ...runOfLedgerId(ledgerId), lastSequence, state }, "report");
  }

  /** Returns what is known of one run. @throws CoordinatorError `run_not_leased`, `lease_trimmed`, `namespace_not_found`. */
  async run(namespace: string, ledgerId: number): Promise<RunResponse> {
    assertLedgerId(ledgerId);
    assertNamespace(namespace);
    return await readRun(this.#ledger, namespace, ledgerId);
  }

  /** Returns the ledger id of a run as people name it. @throws CoordinatorError `invalid_request` for a run that lacks its version. */
  async ledgerIdOf(namespace: string, named: NamedRun): Promise<number> {
    assertNamespace(namespace);
    return await namedLedgerId(this.#ledger, namespace, named);
  }

  /** Returns a page of leases, newest first. @throws CoordinatorError `namespace_not_found`. */
  async runs(namespace: string, query: LedgerQuery): Promise<RunsResponse> {
    assertNamespace(namespace);
    return await readRuns(this.#ledger, namespace, query);
  }

  /** Returns leases, oldest first, in steps. @throws CoordinatorError as `runs`, before the first step. */
  async export(namespace: string, filter: LedgerFilter): Promise<AsyncGenerator<ExportStep, void>> {
    assertNamespace(namespace);
    await this.#ledger.readNamespace(namespace);
    return exportedSteps(this.#ledger, namespace, filter);
  }

  /** Inspects a text that may be a call number. @throws CoordinatorError `namespace_not_found`. */
  async inspect(namespace: string, text: string, options?: InspectOptions): Promise<InspectResponse> {
    assertNamespace(namespace);
    return await inspectCallNumber(this.#ledger, namespace, text, options);
  }

  /** Whether a message can have the number; false only when none can. @throws CoordinatorError as `status`. */
  async canExist(namespace: string, text: string): Promise<boolean> {
    assertNamespace(namespace);
    return await callNumberCanExist(this.#ledger, await this.#guards.of(namespace), namespace, text);
  }

  /** Returns all namespaces, by name, also those whose record can't be read. @throws CoordinatorError `store_unavailable`. */
  async namespaces(): Promise<readonly NamespaceDescription[]> {
    const names = [...(await this.#guards.names())].sort();
    const described = await Promise.all(names.map((namespace) => describeNamespace(this.#sources, namespace)));
    return described.filter((one) => one !== undefined);
  }

  /** Returns high-water mark, runs left and rate of use. @throws CoordinatorError `namespace_not_found`, or why the record can't be read. */
  async status(namespace: string): Promise<StatusResponse> {
    const found = await this.#read(namespace);
    const { guard, record } = found;
    const [newest, { rates }] = await Promise.all([
      newestLease(this.#ledger, namespace),
      this.capacity.capacity(namespace, found),
    ]);
    return {
      ...statusOf(record, newest, this.#clock.now()),
      rates,
      guard: { ...guard.answer(record), ...this.#preflight.effectiveState(namespace, guard.state) },
      store: this.storeKind,
      coordinator: this.name,
    };
  }

  /**
   * Returns which namespaces can be expected to lease: one that recovers or was stopped stops no other.
   * @throws CoordinatorError why the first one does not lease, when none does; `namespace_not_found` when there is none.
   */
  async assertReady(): Promise<Readiness> {
    return await readinessOf(this.#sources);
  }

  /** Returns the state of the namespaces as far as is known here, and whether the store responds. For every few seconds. Never rejects. */
  async observe(): Promise<Observation> {
    return await observe(this.#sources, this.#isStoreUp);
  }

  get #sources(): StatusSources {
    return { guards: this.#guards, preflight: this.#preflight, now: this.#clock.now };
  }

  async #read(namespace: string) {
    assertNamespace(namespace);
    const guard = await this.#guards.of(namespace);
    return { guard, record: await guard.showRecord(), code: guard.state.code, shortageMs: guard.ceiling.shortageMs };
  }

  /** A store on the coordinator's host shares its clock: only a holder can show that this clock is wrong. */
  #assertClock(namespace: string, sentAtMs: number, holder: Holder): void {
    const aheadMs = sentAtMs - this.#clock.now();
    if (aheadMs <= this.#clock.bounds.epsMs) return;
    this.#log.warn({ namespace, aheadMs, holder }, "clock_skew");
    throw new CoordinatorError(
      "clock_skew",
      `the holder's clock is ${aheadMs} ms ahead of the coordinator's: one of the two is wrong. Set it right (NTP)`,
    );
  }
}
