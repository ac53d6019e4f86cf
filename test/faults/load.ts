/**
 * The importers that work in a world while faults happen to it. The usual ones live in this process: two that only take runs, and one that
 * generates call numbers.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Client, createClient, httpSource } from "@callnumber/client";
import { type Lease, ledgerIdOf } from "@callnumber/protocol/api";
import { checkedLease } from "../../packages/client/src/lease-check.js";
import { CallNumberCheck } from "./call-number-check.js";
import { repeated } from "./control.js";
import { ProcessImporter } from "./process-importer.js";
import type { Received } from "./received.js";
import type { Counts } from "./refusal-codes.js";

/** What an importer knows of its world. */
export interface Workplace {
  readonly namespace: string;
  /** URLs. An importer uses them one after the other, a new one after each failure. */
  readonly coordinators: () => readonly string[];
  readonly received: Received;
  /** How often an importer was rejected, by code. */
  readonly codes: Counts;
  /** How many runs it requests at once. */
  readonly runCount: number;
}

export interface Load {
  readonly callNumberCount: number;
  /** What came twice, or should not have come, beyond runs. */
  readonly problems: readonly string[];
  /** How many leases each importer has got that must not be left without. */
  readonly leaseCounts: readonly number[];
  start(workplace: Workplace, storeId: string): void;
  /** A number that the control made. It makes the next one when this resolves. */
  noteControl(number: number): Promise<void> | void;
  /** Resolves when no importer works any more. Without effect before the start, and the second time. */
  stop(): Promise<void>;
}

export class UsualLoad implements Load {
  #importers: readonly Importer[] = [];
  #generating: GeneratingImporter | undefined;
  #inPython: ProcessImporter | undefined;

  /**
   * @param pauseMs of each importer and of the control after each response. Default 0: as fast as they can, which takes a whole core.
   * @param hasPython another importer is a process in Python with a fork, killed after each few leases.
   */
  constructor(
    readonly pauseMs = 0,
    readonly hasPython = false,
  ) {}

  get callNumberCount(): number {
    return this.#generating?.check.count ?? 0;
  }

  get problems(): readonly string[] {
    return [...(this.#generating?.check.findings ?? []), ...(this.#inPython?.failures ?? [])];
  }

  get leaseCounts(): readonly number[] {
    // It counts until it has started: at the run ceiling its pauses leave all runs to the others.
    const inPython = this.#inPython?.leaseCount ?? Number.POSITIVE_INFINITY;
    const counts = this.#importers.map(({ leaseCount }) => leaseCount);
    return [...counts, inPython < LEASES_AT_START ? inPython : Number.POSITIVE_INFINITY];
  }

  start(workplace: Workplace): void {
    const taking = { ...workplace, pauseMs: this.pauseMs };
    this.#importers = [
      new Importer({ ...taking, name: "a", changesCoordinators: false }),
      // Meets every coordinator in turn, and so whatever one of them would do differently.
      new Importer({ ...taking, name: "b", changesCoordinators: true }),
    ];
    this.#generating = new GeneratingImporter({
      ...workplace,
      name: "generating",
      pauseMs: this.pauseMs + GENERATING_PAUSE_MS,
    });
    if (!this.hasPython) return;
    const { check } = this.#generating;
    this.#inPython = new ProcessImporter(workplace, {
      index: 0,
      isInPython: true,
      takeCount: TAKE_COUNT,
      pauseMs: this.pauseMs + GENERATING_PAUSE_MS,
      killEveryLeases: KILL_EVERY_LEASES,
      readerFor: (name) => check.reader("", `${name} in Python`),
    });
  }

  /** The control counts its repeats itself. */
  async noteControl(): Promise<void> {
    if (this.pauseMs > 0) await delay(this.pauseMs);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#importers, this.#generating, this.#inPython].map((one) => one?.stop()));
  }
}

export interface ImporterOptions extends Workplace {
  readonly name: string;
  /** After each lease, too. */
  readonly changesCoordinators: boolean;
  /** Behind each lease. */
  readonly pauseMs: number;
}

/** Between two tries that failed: a person would wait longer, a test must not. */
const RETRY_MS = 10;
const REQUEST_TIMEOUT_MS = 3_000;

/**
 * An importer that only takes runs, one lease after the other: the client's own source and its own check of every answer, without making
 * the 16,384 numbers of each. It never gives up, as a person who starts it repeatedly.
 */
export class Importer {
  leaseCount = 0;
  readonly stop: () => Promise<void>;
  #turn = 0;
  #storeId: string | undefined;
  #lastRun: number | null = null;
  #proof: string | null = null;

  constructor(readonly options: ImporterOptions) {
    this.stop = repeated(() => this.#work());
  }

  async #work(): Promise<void> {
    const { changesCoordinators, pauseMs, codes } = this.options;
    try {
      this.#accept(await this.#lease());
      if (changesCoordinators) this.#turn++;
      if (pauseMs > 0) await delay(pauseMs);
    } catch (error) {
      const code = noteFailure(codes, error);
      // A process of its own for the other store, as a person would start it after a move.
      if (code === "store_mismatch") [this.#storeId, this.#lastRun, this.#proof] = [undefined, null, null];
      // At the run ceiling every importer waits: another coordinator of the store would return the same.
      if (code !== "run_ceiling_reached") this.#turn++;
      await delay(Math.max(RETRY_MS, pauseMs));
    }
  }

  async #lease(): Promise<Lease> {
    const { namespace, name, runCount } = this.options;
    const source = httpSource({ coordinator: coordinatorAt(this.options, this.#turn) });
    const nonce = randomBytes(12).toString("base64url");
    const holder = { name, host: "fault-test", pid: process.pid, labels: {} };
    const evidence = { lastRun: this.#lastRun, proof: this.#proof };
    const request = { runCount, nonce, holder, ...evidence, sentAtMs: Date.now() };
    const answer = await source.lease(namespace, request, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
    const expected = { namespace, nonce, storeId: this.#storeId, lastRun: this.#lastRun };
    return checkedLease(answer, { ...expected, runCountMax: runCount });
  }

  #accept(lease: Lease): void {
    const { received, name } = this.options;
    const { storeId, version, firstRun, runCount, proof } = lease;
    received.note({ importer: name, storeId, version, firstRun, runCount, receivedAtMs: Date.now() });
    this.#storeId = storeId;
    this.#lastRun = ledgerIdOf(version, firstRun + runCount - 1);
    this.#proof = proof;
    this.leaseCount++;
  }
}

/** Otherwise the control and the other importers would get no processor time. */
const GENERATING_PAUSE_MS = 5;
const TAKE_COUNT = 4_096;
const LEASES_AT_START = 2;
/** Of the importer in Python. */
const KILL_EVERY_LEASES = 8;
const WAIT_TIMEOUT_MS = 500;

/**
 * An importer as users write it: the real client, generating every number of every run. When a call fails, a new client is made, as a person
 * would start the importer again.
 */
class GeneratingImporter {
  /** Of all its numbers: of two stores, too, as after a move. */
  readonly check = new CallNumberCheck();
  readonly #write: (piece: Buffer) => void;
  readonly #stopWorking: () => Promise<void>;
  #client: Client | undefined;
  #turn = 0;

  constructor(readonly options: Workplace & { readonly name: string; readonly pauseMs: number }) {
    this.#write = this.check.reader("", options.name);
    this.#stopWorking = repeated(() => this.#work());
  }

  async stop(): Promise<void> {
    await this.#stopWorking();
    await this.#client?.close();
  }

  async #work(): Promise<void> {
    this.#client ??= this.#newClient();
    try {
      this.#write(Buffer.from((await this.#client.take(TAKE_COUNT)).join(""), "latin1"));
      await delay(this.options.pauseMs);
    } catch (error) {
      noteFailure(this.options.codes, error);
      this.#turn++;
      await this.#client.close();
      this.#client = undefined;
    }
  }

  #newClient(): Client {
    const { namespace, name, received, codes } = this.options;
    // Each client is a process of its own to the store: runs rise within it.
    const importer = `${name} ${this.#turn}`;
    return createClient({
      coordinator: coordinatorAt(this.options, this.#turn),
      namespace,
      holder: { name },
      maxRunsPerLease: 4,
      waitTimeoutMs: WAIT_TIMEOUT_MS,
      hooks: {
        onLease: ({ storeId, version, firstRun, runCount }) => {
          received.note({ importer, storeId, version, firstRun, runCount, receivedAtMs: Date.now() });
        },
        onRetry: ({ error }) => void noteFailure(codes, error),
      },
    });
  }
}

function coordinatorAt({ coordinators }: Workplace, turn: number): string {
  const urls = coordinators();
  return urls[turn % urls.length] as string;
}

/** Notes why a request failed, and returns the code. @throws what it is given when that is no error of ours. */
function noteFailure(codes: Counts, error: unknown): string {
  const { reason, code } = error as { readonly reason?: unknown; readonly code?: unknown };
  if (typeof code !== "string") throw error;
  codes.add(typeof reason === "string" ? reason : code);
  return code;
}
