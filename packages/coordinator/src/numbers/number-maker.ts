/**
 * Generates call numbers for requests: the coordinator is its own importer, with one client for each namespace. The client keeps every rule
 * (no pair twice, one store, increasing runs), so none of them stands here again.
 * Guarantees: G9 (docs/guarantees.md).
 */
import type { Client, ClientError, LeaseSource } from "@callnumber/client";
import { COORDINATOR_HOLDER_NAME, isErrorCode } from "@callnumber/protocol/api";
import { CoordinatorError } from "../errors.js";
import { type Log, msSince } from "../log.js";
import { MadeNumbers, type Requester } from "./made-numbers.js";

/** How long a request waits for each run. A lease takes milliseconds, a slow store a second. */
const WAIT_TIMEOUT_MS = 5_000;
/** With fewer numbers left the next run is leased: a quarter of one, and no second spare run. */
const AHEAD_COUNT = 4_096;

/** Errors of the client itself, by the codes of the API. */
const CODES = {
  client_closed: "shutting_down",
  wait_timeout: "store_unavailable",
  coordinator_unreachable: "store_unavailable",
  store_mismatch: "store_mismatch",
  run_not_increasing: "manual_recovery_required",
} as const;
/** The guard leases nothing until an operator has acted; a client of then is as good as that of a new importer. */
const REPAIRED_BY_OPERATORS: ReadonlySet<string> = new Set(["store_id_mismatch", "store_forked"]);

export interface NumberMakerOptions {
  /** Leases the runs: a `Coordinator`. */
  readonly source: LeaseSource;
  readonly log: Log;
  /** How long a request waits for each run, 1 to 3,600,000 ms. Default 5,000. */
  readonly waitTimeoutMs?: number;
  /** The clock, in milliseconds. */
  readonly now?: () => number;
}

export interface MakeOptions {
  /** Refuses numbers of another store. */
  readonly expectedStoreId?: string | undefined;
  readonly requester: Requester;
  /** Looked at when runs are at hand: an aborted request uses no number. */
  readonly signal?: Pick<AbortSignal, "throwIfAborted"> | undefined;
}

/** The numbers of one request, in the order they were made. */
export interface Made {
  readonly storeId: string;
  readonly callNumbers: readonly string[];
}

interface Place {
  readonly client: Client;
  requestCount: number;
  isPreparing: boolean;
}

export class NumberMaker {
  readonly made = new MadeNumbers();
  readonly #options: NumberMakerOptions;
  readonly #places = new Map<string, Place>();
  #isClosed = false;

  constructor(options: NumberMakerOptions) {
    this.#options = options;
  }

  /**
   * Makes `count` call numbers, 1 to 10,000; leases a run first where none is at hand. If this rejects, numbers may already be discarded; no
   * other request gets them.
   * @throws CoordinatorError as `Coordinator.lease`, as soon as no retry helps or after `waitTimeoutMs` without the run that it waits for;
   *   `store_mismatch` for another store than the expected one, and then no number is used; `shutting_down` after `close`.
   */
  async make(namespace: string, count: number, { expectedStoreId, requester, signal }: MakeOptions): Promise<Made> {
    const startedMs = performance.now();
    const place = await this.#placeOf(namespace);
    const { client } = place;
    place.requestCount++;
    try {
      await client.ready(count);
      const storeId = client.storeId as string;
      assertStore(storeId, expectedStoreId);
      signal?.throwIfAborted();
      const callNumbers = await client.take(count);
      this.#prepare(place);
      const ranges = this.made.note(namespace, callNumbers, requester, (this.#options.now ?? Date.now)());
      this.#options.log.info({ namespace, count, ranges, ...requester, durationMs: msSince(startedMs) }, "numbers");
      return { storeId, callNumbers };
    } catch (error) {
      throw (error as Error).name === "ClientError" ? errorOf(error as ClientError) : error;
    } finally {
      place.requestCount--;
      this.#forgetUnlessLeased(namespace, place);
    }
  }

  /** Gives up all runs, and reports how far they were used. Requests that wait, and later ones, get `shutting_down`. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#places.values()].map(({ client }) => client.close()));
  }

  async #placeOf(namespace: string): Promise<Place> {
    // Loaded by the first request: most coordinators never generate a number, and start sooner without.
    const { createClient } = await import("@callnumber/client");
    if (this.#isClosed)
      throw new CoordinatorError("shutting_down", "this coordinator has stopped generating call numbers");
    const known = this.#places.get(namespace);
    if (known !== undefined) return known;
    const { source, log, waitTimeoutMs = WAIT_TIMEOUT_MS } = this.#options;
    const client = createClient({
      source,
      namespace,
      holder: { name: COORDINATOR_HOLDER_NAME },
      maxRunsPerLease: 1,
      // Its own would keep several spare runs where leases are slow.
      prefetch: false,
      waitTimeoutMs,
      hooks: {
        // The request that waits gets the error.
        onRetry() {},
        onStopped: ({ code }) => void (REPAIRED_BY_OPERATORS.has(code) && this.#places.delete(namespace)),
        onReportFailed: ({ message: reason }) => log.debug({ namespace, reason }, "report_not_recorded"),
      },
    });
    const place = { client, requestCount: 0, isPreparing: false };
    this.#places.set(namespace, place);
    return place;
  }

  /** Leases the next run before a request has to wait for it. */
  #prepare(place: Place): void {
    if (place.isPreparing) return;
    place.isPreparing = true;
    const ready = place.client.ready(AHEAD_COUNT).catch(() => {});
    void ready.then(() => {
      place.isPreparing = false;
    });
  }

  /** Names of namespaces that do not exist would fill the memory, and their clients would ask the store repeatedly. */
  #forgetUnlessLeased(namespace: string, place: Place): void {
    if (place.requestCount > 0 || place.client.storeId !== undefined || this.#places.get(namespace) !== place) return;
    this.#places.delete(namespace);
    void place.client.close();
  }
}

function assertStore(storeId: string, expectedStoreId: string | undefined): void {
  if (expectedStoreId === undefined || expectedStoreId === storeId) return;
  throw new CoordinatorError(
    "store_mismatch",
    `this coordinator generates numbers of store ${storeId}, not of the expected one. Use the coordinator of that store`,
  );
}

/** The error that the coordinator itself failed with, if there is one. */
function errorOf(error: ClientError): Error {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof CoordinatorError) return cause;
  }
  const code = Object.hasOwn(CODES, error.code) ? CODES[error.code as keyof typeof CODES] : error.code;
  return isErrorCode(code) ? new CoordinatorError(code, error.message, { cause: error }) : error;
}
