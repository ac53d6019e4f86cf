/**
 * The part of a ledger that is not archived yet, and which of it need not stay: counted once, page by page, and then only what is
 * new. Knows stores only as a port, and keeps a number for each page.
 */
import { setImmediate as turn } from "node:timers/promises";
import { VERSION_COUNT } from "@callnumber/protocol/codec";
import { type LedgerEntry, ledgerIdOf } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../lease-identity.js";
import type { Store } from "../store.js";

/** How much of a ledger stays in the store; where both are said, whichever keeps more. */
export interface Retention {
  /** At least 1. */
  readonly leaseCount?: number | undefined;
  readonly ageMs?: number | undefined;
}

/** At once: leases wait while a store looks at them. So many times a full segment ends where a page does. */
const PAGE_LEASES = 256;

export class HotPart {
  readonly #store: Store;
  readonly #namespace: string;
  readonly #retention: Retention;
  /** Ledger ids of the last leases of full pages, rising, and of where the count has come. */
  #pageEnds: number[] = [];
  #countedTo = 0;
  #leasesBehindPages = 0;

  constructor(store: Store, namespace: string, retention: Retention) {
    this.#store = store;
    this.#namespace = namespace;
    this.#retention = retention;
  }

  /** The oldest leases behind `through` that need not stay, up to `limit`. Never the newest. */
  async due(through: number, limit: number, nowMs: number): Promise<readonly LedgerEntry[]> {
    const last = await this.#lastDue(through);
    const { ageMs = 0 } = this.#retention;
    const due: LedgerEntry[] = [];
    for (let after = through; due.length < limit && after < last; ) {
      const page = await this.#page(after, Math.min(limit - due.length, PAGE_LEASES));
      // A file covers all ids up to its last lease, and times need not rise with ids: what lies behind one that stays, stays, too.
      const stay = page.findIndex((lease) => lastLedgerIdOf(lease) > last || lease.leasedAtMs > nowMs - ageMs);
      due.push(...(stay < 0 ? page : page.slice(0, stay)));
      if (stay >= 0 || page.length === 0) break;
      after = lastLedgerIdOf(page.at(-1) as LedgerEntry);
      await turn();
    }
    return due;
  }

  /** Ledger id of the newest lease behind which enough others stand. */
  async #lastDue(through: number): Promise<number> {
    const [newest, beforeNewest] = await this.#store.listLeases(this.#namespace, {
      belowLedgerId: ledgerIdOf(VERSION_COUNT, 0),
      limit: 2,
    });
    if (newest === undefined || beforeNewest === undefined) return 0;
    const { leaseCount } = this.#retention;
    if (leaseCount === undefined) return lastLedgerIdOf(beforeNewest);
    return Math.min(await this.#lastBehindWhich(leaseCount, through), lastLedgerIdOf(beforeNewest));
  }

  /** Ledger id of the newest lease behind which so many stand; 0 when there are not so many. */
  async #lastBehindWhich(leaseCount: number, through: number): Promise<number> {
    const counted = this.#pageEnds.indexOf(through);
    // Where a page was cut in two, or the store has lost leases, the count begins anew.
    if (counted < 0 || !(await this.#isThere(this.#countedTo))) this.#countFrom(through);
    else this.#pageEnds = this.#pageEnds.slice(counted);
    await this.#countOn();
    let above = this.#leasesBehindPages;
    for (let at = this.#pageEnds.length - 1; at >= 0; at--) {
      if (above >= leaseCount) return await this.#idBehind(this.#pageEnds[at] as number, above - leaseCount);
      above += PAGE_LEASES;
    }
    return 0;
  }

  /** A store loses its newest leases: when the last one that was counted is there, so are all before it. */
  async #isThere(ledgerId: number): Promise<boolean> {
    const [lease] = await this.#page(ledgerId - 1, 1);
    return lease !== undefined && lastLedgerIdOf(lease) === ledgerId;
  }

  #countFrom(through: number): void {
    this.#pageEnds = [through];
    this.#countedTo = through;
    this.#leasesBehindPages = 0;
  }

  async #countOn(): Promise<void> {
    for (;;) {
      const pageEnd = this.#pageEnds.at(-1) ?? 0;
      const page = await this.#page(pageEnd, PAGE_LEASES);
      const last = page.at(-1);
      this.#leasesBehindPages = page.length;
      if (last === undefined) return;
      this.#countedTo = lastLedgerIdOf(last);
      if (page.length < PAGE_LEASES) return;
      this.#pageEnds.push(lastLedgerIdOf(last));
      this.#leasesBehindPages = 0;
      await turn();
    }
  }

  async #idBehind(ledgerId: number, leaseCount: number): Promise<number> {
    if (leaseCount === 0) return ledgerId;
    const last = (await this.#page(ledgerId, leaseCount)).at(-1);
    return last === undefined ? 0 : lastLedgerIdOf(last);
  }

  async #page(afterLedgerId: number, limit: number): Promise<readonly LedgerEntry[]> {
    return await this.#store.exportLeases(this.#namespace, { afterLedgerId, limit });
  }
}
