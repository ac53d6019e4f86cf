/**
 * Trims the ledgers of all namespaces that have a retention, at the start and each minute. A step appends the oldest leases to a file, and only
 * when they are on the disk does the store delete them: after a kill in between they are in both, and are written again.
 * Knows stores only as a port.
 */
import { randomBytes } from "node:crypto";
import { open, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { runOfLedgerId } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import { GAP_MS } from "../guard/clocks.js";
import { PHASES } from "../guard/record.js";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
import type { Log } from "../log.js";
import type { Store } from "../stores/store.js";

/** No reader of the newest leases reads more than a week back; two clocks may differ by some minutes. */
export const RETENTION_DAYS_MIN = 8;
export const RETENTION_DAYS_MAX = 36_500;

/** The most leases that one step trims: lease requests wait meanwhile. */
export const LEDGER_TRIM_LEASES_MAX = 500;

const DAY_MS = 24 * 3_600_000;
const EVERY_MS = 60_000;

export interface LedgerTrimmerOptions {
  readonly store: Store;
  /** Undefined: nothing is trimmed, and a warning is logged. */
  readonly files: Pick<LedgerFiles, "append"> | undefined;
  readonly log: Log;
  /** The clock, in milliseconds. */
  readonly now?: () => number;
  /** How often it trims, ms. Default 60,000. */
  readonly everyMs?: number;
}

/** Trims the ledgers of one store while it is started. */
export class LedgerTrimmer {
  readonly #options: LedgerTrimmerOptions;
  readonly #warned = new Set<string>();
  /** Leases that were written and not trimmed, by namespace: a store that rejects every trim must not fill the disk. */
  readonly #written = new Map<string, string>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #inFlight: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: LedgerTrimmerOptions) {
    this.#options = options;
  }

  start(): void {
    const trim = () => {
      this.#inFlight ??= this.trimAll().finally(() => {
        this.#inFlight = undefined;
      });
    };
    this.#timer ??= setInterval(trim, this.#options.everyMs ?? EVERY_MS);
    trim();
  }

  /** Waits for the step in flight. The store is the caller's to close. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#isStopped = true;
    await this.#inFlight;
  }

  /** Trims what is due, one namespace after the other. Errors of store and system are logged. */
  async trimAll(): Promise<void> {
    const { store } = this.#options;
    const namespaces = await this.#logged(undefined, () => store.listNamespaces());
    for (const namespace of namespaces ?? []) await this.#trimNamespace(namespace);
  }

  async #trimNamespace(namespace: string): Promise<void> {
    let [leaseCount, throughLedgerId] = [0, 0];
    for (let isDone = false; !isDone && !this.#isStopped; ) {
      const trimmed = (await this.#logged(namespace, () => this.#trimOldest(namespace))) ?? [];
      leaseCount += trimmed.length;
      throughLedgerId = trimmed.at(-1) ?? throughLedgerId;
      isDone = trimmed.length < LEDGER_TRIM_LEASES_MAX;
      await turn();
    }
    if (leaseCount > 0) {
      const { version, run: upToRun } = runOfLedgerId(throughLedgerId);
      this.#options.log.info({ namespace, leaseCount, version, upToRun }, "ledger_trimmed");
    }
  }

  /** One step. Returns the last ledger ids of the trimmed leases: none when nothing was due, or another coordinator or a report came in between. */
  async #trimOldest(namespace: string): Promise<readonly number[]> {
    const { store, files, now = Date.now } = this.#options;
    const { phase, changedAtMs, storeId, seal } = await store.readNamespace(namespace);
    const nowMs = now();
    // There is a heartbeat every few seconds: farther from it, one of the clocks is wrong, and by a wrong clock leases in use seem old.
    if (phase !== PHASES.open || Math.abs(nowMs - changedAtMs) > GAP_MS) return [];
    const { days, ...known } = await store.readRetention(namespace);
    if (days === 0) return [];
    if (files === undefined) {
      this.#warn(namespace, days);
      return [];
    }
    const leases = await this.#due(namespace, nowMs - days * DAY_MS);
    const last = leases.at(-1);
    if (last === undefined) return [];
    const identity = JSON.stringify([storeId, leases.map((lease) => [lastLedgerIdOf(lease), lease.progress])]);
    if (this.#written.get(namespace) !== identity) {
      await files.append(namespace, storeId, leases);
      this.#written.set(namespace, identity);
    }
    const through = lastLedgerIdOf(last);
    // A lease of a clock that was ahead has a later time than those behind it.
    const leasedAtMs = Math.max(known.leasedAtMs, ...leases.map((lease) => lease.leasedAtMs));
    const record = { storeId, phase, seal };
    const trim = { record, trimmedThrough: known.through, through, leasedAtMs, leases };
    if (!(await store.trimLedger(namespace, trim))) return [];
    this.#written.delete(namespace);
    return leases.map(lastLedgerIdOf);
  }

  /** Returns the oldest leases, up to the first that stays. Never the newest: the guard reads it. */
  async #due(namespace: string, beforeMs: number): Promise<readonly LedgerEntry[]> {
    const query = { direction: "oldest_first", limit: LEDGER_TRIM_LEASES_MAX + 1 } as const;
    const oldest = (await this.#options.store.leases(namespace, query)).slice(0, -1);
    const firstToStay = oldest.findIndex((lease) => !isDue(lease, beforeMs));
    return firstToStay < 0 ? oldest : oldest.slice(0, firstToStay);
  }

  #warn(namespace: string, days: number): void {
    if (this.#warned.has(namespace)) return;
    this.#warned.add(namespace);
    this.#options.log.warn({ namespace, days, reason: "this coordinator has no --ledger-dir" }, "ledger_not_trimmed");
  }

  /** Undefined for an error of the store or the system: the next minute tries again. */
  async #logged<T>(namespace: string | undefined, act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      const { code, message, syscall } = error as NodeJS.ErrnoException;
      if (!(error instanceof CoordinatorError) && syscall === undefined) throw error;
      this.#options.log.warn({ namespace, code, reason: message }, "ledger_trim_failed");
      return undefined;
    }
  }
}

/** A lease whose holder still reports stays, however old: the reports must find it. */
function isDue({ leasedAtMs, progress, firstRun, runCount }: LedgerEntry, beforeMs: number): boolean {
  if (leasedAtMs >= beforeMs) return false;
  if (progress === null || progress.reportedAtMs < beforeMs) return true;
  // Its holder uses none of its runs any more, and will report nothing new.
  return progress.state === "exhausted" ? progress.run === firstRun + runCount - 1 : progress.state !== "open";
}

/** Only the owner may change them; the directory decides who may read them. */
const FILE_MODE = 0o640;

/**
 * The files that trimmed leases go to: a lease a line, as `export` prints them. Each process has its own file for each namespace and appends to
 * it: two processes never write within each other's lines.
 */
export class LedgerFiles {
  readonly #directory: string;
  #fileId = newFileId();

  /** @param directory exists already: one that a coordinator made would take the place of a disk that is not mounted. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Appends leases. They are on the disk when this resolves.
   * @throws the system's error, such as ENOSPC. Some of the lines may be there then.
   */
  async append(namespace: string, storeId: string, leases: readonly LedgerEntry[]): Promise<void> {
    // A move gives the namespace another store id, with the same UUID.
    const [storeUuid] = storeId.split(".");
    const path = join(this.#directory, `${namespace}.${storeUuid}.${this.#fileId}.ndjson`);
    const file = await open(path, "a", FILE_MODE);
    try {
      const { size } = await file.stat();
      try {
        await file.appendFile(leases.map((lease) => `${JSON.stringify(lease)}\n`).join(""));
        await file.sync();
        // A new file is on the disk only with its directory.
        if (size === 0) await syncDirectory(this.#directory);
      } catch (error) {
        // The file may end within a line, and a sync that failed once proves nothing for the next one: no line goes behind these.
        this.#fileId = newFileId();
        await (size === 0 ? unlink(path) : file.truncate(size)).catch(() => {});
        throw error;
      }
    } finally {
      await file.close();
    }
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function newFileId(): string {
  return randomBytes(8).toString("hex");
}
