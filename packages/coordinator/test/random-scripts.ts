/** Random scripts: what many callers might do to a store in a row, right and wrong. */

import { ledgerIdOf, type NotedState, runOfLedgerId } from "@callnumber/protocol/api";
import { RUN_COUNT, RUN_MAX, VERSION_COUNT } from "@callnumber/protocol/codec";
import fc from "fast-check";
import type { CoordinatorError } from "../src/errors.js";
import type { Outcome, StepCommand } from "../src/guard/commands.js";
import { FORKED_SEAL, type NamespaceRecord } from "../src/guard/record.js";
import { MOVED_SEAL } from "../src/guard/store-id.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { recordReport } from "../src/ledger/ledger-changes.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { type LeaseQuery, type Store } from "../src/stores/store.js";
import { type Commands, commandsFor, reportCommand, storeIdFrom } from "./commands-for-test.js";
import { stepOn as doStepOn, stepsOn } from "./steps-for-test.js";

/** `end` begins near the end of the run space; `none` is never made. */
type Name = "main" | "end" | "none";
export type StoreIds = Readonly<Record<Name, string>>;

export interface Play {
  readonly name: string;
  on(store: Store, ids: StoreIds): Promise<unknown>;
}

/** What a step knows of the store that it is played on. */
interface Known {
  readonly generation: number;
  /** Ledger id of the mark. */
  readonly mark: number;
}

const GENERATION = [0, 0, 0, 0, 0, 0, 1, -1];

interface AskedLease {
  readonly name: Name;
  readonly isForeign: boolean;
  readonly runCount: number;
  readonly floor: number;
  /** By how much the caller saw a later generation. */
  readonly newer: number;
  /** A run that the holder proves to have, from the mark; undefined for none. */
  readonly provenRun: number | undefined;
  readonly who: number;
}

interface AskedTrim {
  readonly name: Name;
  readonly isForeign: boolean;
  readonly leaseCount: number;
  /** Leases that the caller does not know of: the oldest, or those behind the last. */
  readonly missing: "none" | "oldest" | "newest";
  /** Whether the caller missed the last report on the last lease. */
  readonly isReportMissed: boolean;
  /** By how much the caller is wrong about what was trimmed. */
  readonly stale: number;
}

const DEFAULT_LEASE: AskedLease = {
  name: "main",
  isForeign: false,
  runCount: 1,
  floor: 0,
  newer: 0,
  provenRun: undefined,
  who: 1,
};

function leaseOf(
  { lease }: Commands,
  { runCount, floor, newer, provenRun, who }: AskedLease,
  known: Known,
): StepCommand {
  return lease({
    runCount,
    floor,
    generationMin: atLeastZero(known.generation + newer),
    provenRun: provenRun === undefined ? 0 : atLeastZero(known.mark + provenRun),
    holder: { name: `importer-${who}`, host: "h", pid: who, labels: {} },
    leaseNonce: nonceOf(who),
  });
}

type OnStore = Play["on"];

/** For each kind of play a function that makes one, named by its kind and parameters. */
function namedPlays<Kinds extends Readonly<Record<string, (...parameters: never[]) => OnStore>>>(kinds: Kinds) {
  const maker = ([kind, make]: [string, (...parameters: never[]) => OnStore]) => [
    kind,
    (...parameters: never[]): Play => ({ name: `${kind} ${JSON.stringify(parameters)}`, on: make(...parameters) }),
  ];
  type Makers = { readonly [Kind in keyof Kinds]: (...parameters: Parameters<Kinds[Kind]>) => Play };
  return Object.fromEntries(Object.entries(kinds).map(maker)) as Makers;
}

const play = namedPlays({
  lease(own: Partial<AskedLease> = {}) {
    const asked = { ...DEFAULT_LEASE, ...own };
    return stepOn(asked.name, (commands, known) => leaseOf(commands, asked, known), asked.isForeign);
  },
  /** Leases of the same moment, all in the namespace of the first. */
  leases: (all: readonly AskedLease[]) => async (store, ids) => {
    const { name } = all[0] ?? DEFAULT_LEASE;
    const known = await knownOf(store, name);
    const commands = all.map((asked) => leaseOf(commandsFor(idFor(ids[name], asked.isForeign)), asked, known));
    const step = stepsOn(store, name);
    return await Promise.all(commands.map((command) => doneOrRejected(() => step(command))));
  },
  heartbeat: (name: Name, floor = 0) => stepOn(name, ({ heartbeat }) => heartbeat({ floor })),
  claim: (name: Name, newer = 0, generationMin = 0) =>
    stepOn(name, ({ claim }, { generation }) => claim(atLeastZero(generation + newer), { generationMin })),
  confirm: (name: Name, newer = 0, floor = 0) =>
    stepOn(name, ({ confirm }, { generation }) => confirm(atLeastZero(generation + newer), { floor })),
  seal: (name: Name, seal = FORKED_SEAL) => stepOn(name, (make) => make.seal(seal)),
  recover: (name: Name, isForeign = false, floor = 0) => stepOn(name, ({ recover }) => recover({ floor }), isForeign),
  advance: (name: Name, newer = 0, floor = 0, versions = 0) =>
    stepOn(name, ({ advance }, { generation, mark }) =>
      advance(runOfLedgerId(mark).version + versions, { floor, generationMin: atLeastZero(generation + newer) }),
    ),
  init: (name: Name) => stepOn(name, ({ init }) => init()),
  report:
    (name: Name, ledgerId: number, who: number, lastSequence: number | null, state: NotedState = "open") =>
    (store) =>
      recordReport(store, name, ledgerId, reportCommand({ nonce: nonceOf(who), lastSequence, state })),
  find: (name: Name, ledgerId: number) => (store) => findLease(store, name, ledgerId),
  list: (name: Name, from: number, limit: number, direction: LeaseQuery["direction"]) => (store) =>
    store.leases(name, { from, direction, limit }),
  /** Trims the oldest leases, as the caller knows them. */
  trim: (asked: AskedTrim) => async (store, ids) => {
    const { name, isForeign, leaseCount, missing, isReportMissed, stale } = asked;
    const { through } = await store.readRetention(name);
    const oldest = await store.leases(name, { direction: "oldest_first", limit: leaseCount });
    const last = oldest.at(-1);
    const unreported = last && isReportMissed ? { ...last, progress: null } : last;
    const leases = unreported === undefined ? [] : [...oldest.slice(0, -1), unreported];
    const { phase = 0, seal = "" } = await store.readNamespace(name).catch(() => ({}) as Partial<NamespaceRecord>);
    const known = { none: leases, oldest: leases.slice(1), newest: leases.slice(0, -1) }[missing];
    return await store.trimLedger(name, {
      record: { storeId: idFor(ids[name], isForeign), phase, seal },
      trimmedThrough: atLeastZero(through + stale),
      through: last === undefined ? through : lastLedgerIdOf(last),
      leasedAtMs: leaseCount,
      leases: known,
    });
  },
  keep: (name: Name, days: number) => (store) => store.setRetentionDays(name, days),
  retention: (name: Name) => (store) => store.readRetention(name),
  read: (name: Name) => (store) => store.readNamespace(name),
});

/** What the step needs to know is read from the store that it is played on, right before. */
function stepOn(name: Name, make: (commands: Commands, known: Known) => StepCommand, isForeign = false): OnStore {
  return async (store, ids) => {
    const known = await knownOf(store, name);
    const command = make(commandsFor(idFor(ids[name], isForeign)), known);
    return await done(() => doStepOn(store, name, command, { now: Date.now }));
  };
}

function idFor(storeId: string, isForeign: boolean): string {
  return isForeign ? storeIdFrom(1) : storeId;
}

function knownOf(store: Store, name: Name): Promise<Known> {
  return store.readNamespace(name).then(
    ({ generation, version, highWaterMark }) => ({ generation, mark: ledgerIdOf(version, highWaterMark) }),
    () => ({ generation: 0, mark: 0 }),
  );
}

async function done(step: () => Promise<Outcome>): Promise<unknown> {
  const { after, ...rest } = await step();
  // Each store has an epoch of its own.
  return { ...rest, after: { ...after, epoch: "" } };
}

async function doneOrRejected(step: () => Promise<Outcome>): Promise<unknown> {
  try {
    return await done(step);
  } catch (error) {
    const { code, reason, generation } = error as CoordinatorError;
    if (code === undefined) throw error;
    return { rejected: reason ?? code, generation };
  }
}

function nonceOf(who: number): string {
  return `nonce-of-caller-${who % 2}`;
}

function atLeastZero(number: number): number {
  return Math.max(number, 0);
}

const name = fc.constantFrom<Name[]>("main", "main", "main", "main", "end", "end", "none");
const made = fc.constantFrom<Name[]>("main", "main", "main", "main", "end", "end");
const run = fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: RUN_MAX - 300, max: RUN_MAX }));
const newer = fc.constantFrom(...GENERATION);
const floor = fc.constantFrom(0, 0, 0, 0, 50, 500, RUN_COUNT);
const sequence = fc.option(fc.nat(16_383));
const seldom = fc.nat(19).map((number) => number === 0);

const asked: fc.Arbitrary<AskedLease> = fc.record({
  name,
  isForeign: seldom,
  runCount: fc.integer({ min: 1, max: 64 }),
  floor,
  newer,
  provenRun: fc.constantFrom(undefined, undefined, undefined, 0, -3, 1),
  who: fc.nat(3),
});

const askedTrim: fc.Arbitrary<AskedTrim> = fc.record({
  name,
  isForeign: seldom,
  leaseCount: fc.integer({ min: 1, max: 6 }),
  missing: fc.constantFrom("none", "none", "none", "none", "none", "oldest", "newest"),
  isReportMissed: fc.constantFrom(false, false, false, true),
  stale: fc.constantFrom(0, 0, 0, 0, 0, -1, 1),
});

/** A kind of play, with random parameters. */
function drawn<P extends unknown[]>(
  weight: number,
  make: (...parameters: P) => Play,
  ...parameters: { [K in keyof P]: fc.Arbitrary<P[K]> }
): { readonly weight: number; readonly arbitrary: fc.Arbitrary<Play> } {
  return { weight, arbitrary: fc.tuple<P>(...parameters).map((parts) => make(...parts)) };
}

const states = fc.constantFrom<NotedState[]>("open", "exhausted", "closed", "discarded");
const anyLedgerId = fc.oneof(run, fc.constant(RUN_COUNT * VERSION_COUNT));
const directions = fc.constantFrom<LeaseQuery["direction"][]>("newest_first", "oldest_first");
const seals = fc.constantFrom(FORKED_SEAL, FORKED_SEAL, FORKED_SEAL, MOVED_SEAL);

/** What ends or moves a namespace comes seldom: or most of a script would meet nothing but one refusal. */
const anyPlay: fc.Arbitrary<Play> = fc.oneof(
  drawn(16, play.lease, asked),
  drawn(6, play.leases, fc.array(asked, { minLength: 2, maxLength: 6 })),
  drawn(12, play.report, name, run, fc.nat(1), sequence, states),
  drawn(6, play.find, name, run),
  drawn(4, play.list, name, anyLedgerId, fc.integer({ min: 1, max: 5 }), directions),
  drawn(5, play.trim, askedTrim),
  drawn(1, play.keep, name, fc.constantFrom(0, 8, 90)),
  drawn(1, play.retention, name),
  drawn(3, play.read, name),
  drawn(3, play.heartbeat, name, floor),
  drawn(2, play.init, made),
  drawn(1, play.claim, name, newer, fc.constantFrom(0, 0, 3)),
  drawn(2, play.confirm, name, newer, fc.constantFrom(0, 0, 50, RUN_MAX)),
  drawn(1, play.seal, name, seals),
  drawn(3, play.recover, made, seldom, fc.constantFrom(0, 0, 50, RUN_COUNT + 5)),
  drawn(3, play.advance, name, newer, floor, fc.constantFrom(0, 0, 0, 1)),
);

export function randomScript(length: number): fc.Arbitrary<readonly Play[]> {
  return fc.array(anyPlay, { minLength: length, maxLength: length });
}

/** Meets every refusal, whatever the seed: a comparison of successes only would compare little. */
export const scriptOfRefusals: readonly Play[] = [
  play.init("main"),
  play.read("none"),
  play.lease({ runCount: 2 }),
  play.trim({ name: "main", isForeign: false, leaseCount: 1, missing: "none", isReportMissed: false, stale: 0 }),
  play.report("main", 2, 2, 5),
  play.report("main", 3, 1, 5),
  play.lease({ floor: 3 }),
  play.lease({ newer: 1 }),
  play.lease({ isForeign: true }),
  play.lease({ provenRun: 1 }),
  ...Array.from({ length: 5 }, () => play.lease({ name: "end", runCount: 64 })),
  play.advance("main"),
  play.advance("end", 0, 0, 1),
  play.advance("end"),
  play.lease({ name: "end", runCount: 64 }),
  play.confirm("main"),
  play.claim("main"),
  play.lease(),
  play.confirm("main", 0, RUN_MAX),
  play.confirm("main"),
  play.lease(),
  play.seal("main"),
  play.lease(),
  play.recover("main"),
  play.confirm("main"),
  play.seal("main", MOVED_SEAL),
  play.lease(),
];
