/** Pages and exports of a ledger against the plain meaning of a filter, on random ledgers. */
import { type KnownRunState, ledgerIdOf } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import fc from "fast-check";
import { expect, test } from "vitest";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { exportedSteps, type LedgerFilter, ledgerPage } from "../src/ledger/read-ledger.js";
import { type LeaseQuery, type LedgerReader, NO_RETENTION, type Retention } from "../src/stores/store.js";
import { holder, NAMESPACE } from "./commands-for-test.js";
import { randomLedger } from "./random-ledgers.js";

/** A list of leases, read as a store lets its ledger be read. */
class ListedLedger implements LedgerReader {
  /** The leases of each read. */
  readonly reads: number[] = [];
  /** Holders whose leases were trimmed. */
  readonly known = new Set<string>();
  constructor(readonly all: readonly LedgerEntry[]) {}

  get readCount(): number {
    return this.reads.reduce((sum, count) => sum + count, 0);
  }

  async leases(_: string, { from, sinceMs, direction, limit }: LeaseQuery) {
    if (sinceMs !== undefined) return this.all.filter((lease) => lease.leasedAtMs >= sinceMs).slice(0, limit);
    const isNewer = direction === "oldest_first";
    const inOrder = isNewer ? this.all : this.all.toReversed();
    const start = from ?? (isNewer ? 0 : Number.POSITIVE_INFINITY);
    const isWithin = (id: number) => (isNewer ? id >= start : id <= start);
    const found = inOrder.filter((lease) => isWithin(lastLedgerIdOf(lease))).slice(0, limit);
    this.reads.push(found.length);
    return found;
  }

  async hasHolder(_: string, name: string): Promise<boolean> {
    return this.known.has(name) || this.all.some(({ holder }) => holder.name === name);
  }

  async readRetention(): Promise<Retention> {
    return NO_RETENTION;
  }
}

/** The meaning of each condition, in the plainest way. */
const MEANINGS: { readonly [K in keyof LedgerFilter]-?: (entry: LedgerEntry, wanted: never) => boolean } = {
  holder: (entry, wanted: string) => entry.holder.name === wanted,
  host: (entry, wanted: string) => entry.holder.host === wanted,
  label: ({ holder: { labels } }, wanted: readonly string[]) => {
    const theirs = new Set(Object.entries(labels).map(([name, value]) => `${name}=${value}`));
    return wanted.every((label) => theirs.has(label));
  },
  state: (entry, wanted: KnownRunState) => (entry.progress === null ? "unreported" : entry.progress.state) === wanted,
  leasedFromMs: (entry, wanted: number) => entry.leasedAtMs >= wanted,
  leasedToMs: (entry, wanted: number) => entry.leasedAtMs < wanted,
  fromRun: (entry, wanted: number) => runsOf(entry).some((run) => run >= wanted),
  toRun: (entry, wanted: number) => runsOf(entry).some((run) => run <= wanted),
};

function runsOf({ version, firstRun, runCount }: LedgerEntry): number[] {
  return Array.from({ length: runCount }, (_, index) => ledgerIdOf(version, firstRun + index));
}

function isMeant(filter: LedgerFilter, entry: LedgerEntry): boolean {
  return Object.entries(filter).every(([name, wanted]) => {
    const holds = MEANINGS[name as keyof LedgerFilter] as (entry: LedgerEntry, wanted: unknown) => boolean;
    return wanted === undefined || holds(entry, wanted);
  });
}

async function allPages(ledger: LedgerReader, filter: LedgerFilter, limit: number): Promise<readonly LedgerEntry[]> {
  const leases: LedgerEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = await ledgerPage(ledger, NAMESPACE, { ...filter, limit, cursor });
    expect(page.leases.length).toBeLessThanOrEqual(limit);
    leases.push(...page.leases);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return leases;
}

async function exported(ledger: LedgerReader, filter: LedgerFilter) {
  const leases: LedgerEntry[] = [];
  let upToRun = -1;
  for await (const step of exportedSteps(ledger, NAMESPACE, filter)) {
    leases.push(...step.leases);
    ({ upToRun } = step);
  }
  return { leases, upToRun };
}

/** Bounds that fall on leases, next to them and between them; values that some have. */
function filterOver(leases: readonly LedgerEntry[]): fc.Arbitrary<LedgerFilter> {
  const near = (values: readonly number[]) =>
    fc
      .tuple(fc.constantFrom(0, ...values), fc.integer({ min: -2, max: 2 }))
      .map(([value, by]) => Math.max(value + by, 0));
  const run = near(leases.flatMap((lease) => [ledgerIdOf(lease.version, lease.firstRun), lastLedgerIdOf(lease)]));
  const time = near(leases.map((lease) => lease.leasedAtMs));
  // All conditions at once would leave nothing to compare.
  const seldom = <T>(arbitrary: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
  return fc.record({
    holder: seldom(fc.constantFrom("importer", "Büro für Listen", "absent")),
    host: seldom(fc.constantFrom("mail-1", "mail-2")),
    label: seldom(fc.subarray(["archive=lists", "b=2", 'a="\\\n'])),
    state: seldom(fc.constantFrom<KnownRunState>("open", "exhausted", "closed", "discarded", "unreported")),
    leasedFromMs: seldom(time),
    leasedToMs: seldom(time),
    fromRun: seldom(run),
    toRun: seldom(run),
  });
}

const queries = randomLedger(60).chain((leases) =>
  fc.record({ leases: fc.constant(leases), filter: filterOver(leases), limit: fc.integer({ min: 1, max: 20 }) }),
);

test("a filter returns what it means, newest first in pages and oldest first in an export", async () => {
  await fc.assert(
    fc.asyncProperty(queries, async ({ leases, filter, limit }) => {
      const ledger = new ListedLedger(leases);
      const meant = leases.filter((lease) => isMeant(filter, lease));
      expect(await allPages(ledger, filter, limit)).toEqual(meant.toReversed());
      expect((await exported(ledger, filter)).leases).toEqual(meant);
    }),
    { numRuns: 1_000 },
  );
});

test("an export reports the run up to which it read: later leases are above it", async () => {
  await fc.assert(
    fc.asyncProperty(queries, fc.nat(60), async ({ leases, filter }, there) => {
      const { fromRun: _from, toRun: _to, leasedToMs: _until, ...endless } = filter;
      const before = await exported(new ListedLedger(leases.slice(0, there)), endless);
      const after = await exported(new ListedLedger(leases), { ...endless, fromRun: before.upToRun + 1 });
      const meant = leases.filter((lease) => isMeant(endless, lease));
      expect([...before.leases, ...after.leases]).toEqual(meant);
    }),
    { numRuns: 300 },
  );
});

function longLedger(leaseCount: number): ListedLedger {
  return new ListedLedger(
    Array.from({ length: leaseCount }, (_, index) => {
      const [nonce, firstRun, leasedAtMs] = [`nonce-of-lease-${index}`, index + 1, 1_790_000_000_000 + index];
      return { version: 0, firstRun, runCount: 1, leasedAtMs, holder, coordinator: "c", nonce, progress: null };
    }),
  );
}

/** How often other work ran meanwhile. */
async function turnsDuring<T>(work: () => Promise<T>): Promise<{ readonly done: T; readonly turns: number }> {
  let turns = 0;
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const done = await work();
  clearImmediate(next);
  return { done, turns };
}

test("one page reads a bounded number of leases, however rare the wanted ones: it is empty, and has a cursor", async () => {
  const ledger = longLedger(25_000);
  ledger.known.add("trimmed");
  const page = await ledgerPage(ledger, NAMESPACE, { holder: "trimmed", limit: 20 });
  expect(page).toEqual({ leases: [], nextCursor: "15001", trimmed: null });
  expect(ledger.readCount).toBe(10_000);
});

test("leases of a holder that the ledger does not know are found by reading none", async () => {
  const ledger = longLedger(25_000);
  const filter = { holder: "absent" };
  expect(await ledgerPage(ledger, NAMESPACE, { ...filter, limit: 20 })).toEqual({
    leases: [],
    nextCursor: null,
    trimmed: null,
  });
  expect(ledger.readCount).toBe(0);
  // An export is continued from where it ended: above the newest lease.
  expect(await exported(ledger, filter)).toMatchObject({ leases: [], upToRun: 25_000 });
  expect(ledger.readCount).toBe(1);
});

test("a page or an export within bounds does not read what is outside of them", async () => {
  const ledger = longLedger(25_000);
  const page = await ledgerPage(ledger, NAMESPACE, { host: "mail-1", fromRun: 12_001, toRun: 12_003, limit: 20 });
  expect(page.leases.map(({ firstRun }) => firstRun)).toEqual([12_003, 12_002, 12_001]);
  expect(ledger.readCount).toBeLessThanOrEqual(200);
  const times = { leasedFromMs: 1_790_000_000_100, leasedToMs: 1_790_000_000_103 };
  ledger.reads.length = 0;
  expect((await exported(ledger, times)).leases.map(({ firstRun }) => firstRun)).toEqual([101, 102, 103]);
  expect(ledger.readCount).toBe(100);
});

test.each([{}, { holder: holder.name }, { fromRun: 2 }])(
  "the greatest page is read in steps, and lets other work run between any two: %j",
  async (filter) => {
    const ledger = longLedger(5_000);
    const { done, turns } = await turnsDuring(() => ledgerPage(ledger, NAMESPACE, { ...filter, limit: 500 }));
    expect(done.leases).toEqual(ledger.all.slice(-500).toReversed());
    expect(done.nextCursor).toBe("4501");
    expect(ledger.reads).toEqual([100, 100, 100, 100, 100]);
    expect(turns).toBeGreaterThanOrEqual(4);
  },
);
