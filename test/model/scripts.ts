/**
 * The scripts that run inside the data server, each one atomic step: lease, touch, claim, confirm, recover, advance.
 * They see the record, the server's epoch and two clocks, and know nothing of coordinators, replication or faults.
 *
 * Each rule stands where it stands in the guard, and its words are the guard's: `checkOwned` and `checkHealthy` in checks.ts, the rest in
 * decide.ts (packages/coordinator/src/guard). conformance.test.ts plays random states on both. Left out, because each of them
 * only refuses more: foreign and sealed records, the end of the last version, evidence of holders, a silence of 30 days,
 * more replicas than nodes, a ledger that was left behind, and that a lease takes at most 1/64 of the room.
 */
import { type Design, firstOf, lastOf, line, lineEnds, type Numbers, versionOf } from "./design.js";
import { type DataNode, isMaster, type StoreRecord } from "./world.js";

export interface Rules {
  readonly design: Design;
  readonly numbers: Numbers;
  /** Coordinators touch the store between leases, as they do in the guard every few seconds. */
  readonly touches: boolean;
}

/** What a caller sends along: what it remembers, and its clock. */
export interface Caller {
  readonly floor: number;
  readonly gmin: number;
  readonly clock: number;
}

/** Refusals after which a coordinator claims. */
const DOUBTS = ["STALEGEN", "EPOCH", "PENDING", "GAP", "ROLLBACK"] as const;
export type Doubt = (typeof DOUBTS)[number];
export type Refusal =
  | Doubt
  | "EMPTY"
  | "CORRUPT"
  | "REPLICA"
  | "CLOCK"
  | "CLOCKBACK"
  | "AHEAD"
  | "RACED"
  | "OPERATOR"
  | "EXHAUSTED"
  | "EARLY";

/** A script either refuses and changes nothing, or answers the record as it has written it. */
export type Answer = Refusal | StoreRecord;

export const isRefusal = (answer: Answer): answer is Refusal => typeof answer === "string";
export const isRecoverable = (answer: Answer): answer is Doubt => (DOUBTS as readonly Answer[]).includes(answer);

/** Leases up to `asked` runs from the old mark upwards; the new mark is the last of them. */
export function leaseScript(rules: Rules, node: DataNode, clock: number, caller: Caller, asked: number): Answer {
  const { design, numbers } = rules;
  const record = checkHealthy(rules, node, clock, caller);
  if (isRefusal(record)) return record;
  const earliest = Math.min(clock, caller.clock);
  const version = versionOf(numbers, record.c);
  const last = lastOf(numbers, version);
  if (record.c >= last) return "EXHAUSTED";
  const highest = Math.min(line(numbers, version, earliest), last);
  const room = design.jump === "age" ? (earliest - record.t) * numbers.rate : highest - record.c;
  const runCount = Math.min(asked, room);
  if (runCount < 1 || !design.leases) return "AHEAD";
  return { ...record, c: record.c + runCount, t: later(record, clock, caller) };
}

/** Writes the time, and so that the store has not been silent. */
export function touchScript(rules: Rules, node: DataNode, clock: number, caller: Caller): Answer {
  const record = checkHealthy(rules, node, clock, caller);
  return isRefusal(record) ? record : { ...record, t: later(record, clock, caller) };
}

/** Takes the store for the caller, who saw generation `g`: nobody leases from this record before a confirmation. */
export function claimScript(rules: Rules, node: DataNode, clock: number, caller: Caller, g: number): Answer {
  const record = ours(rules, node, clock, caller);
  if (isRefusal(record)) return record;
  if (record.g !== g) return "RACED";
  const generation = Math.max(record.g, caller.gmin) + 1;
  const claimed = { ...record, ep: node.epoch, g: generation, p: 1, t: later(record, clock, caller) };
  return rules.design.claimFirst
    ? claimed
    : confirmScript(rules, { ...node, record: claimed }, clock, caller, generation);
}

/** Raises the counter past everything that any copy of the store can have leased, and opens the store. */
export function confirmScript(rules: Rules, node: DataNode, clock: number, caller: Caller, g: number): Answer {
  const record = ours(rules, node, clock, caller);
  if (isRefusal(record)) return record;
  if (record.g !== g || record.p !== 1 || (rules.design.epoch && record.ep !== node.epoch)) return "RACED";
  const known = Math.max(record.c, rules.design.memory ? caller.floor : 0);
  const target = jumpTarget(rules, record, known, Math.max(clock, caller.clock));
  if (isPastTheEnd(rules, record.c, target)) return "EXHAUSTED";
  if (known > target) return "OPERATOR";
  return { ...record, c: target, p: 0, t: later(record, clock, caller) };
}

/** An operator's verb, for a record that is lost or wrong; the pin that he gives stands for the caller's floor. */
export function recoverScript(rules: Rules, node: DataNode, clock: number, caller: Caller): Answer {
  const found = ours(rules, node, clock, caller);
  const isAnew = found === "EMPTY" || found === "CORRUPT";
  if (isRefusal(found) && !isAnew) return found;
  const unfit = unfitness(rules, node, clock, caller);
  if (unfit) return unfit;
  const old = isRefusal(found) ? NO_RECORD : found;
  const latest = Math.max(clock, caller.clock);
  const known = Math.max(old.c, caller.floor);
  const version = versionOf(rules.numbers, known);
  const base = version > versionOf(rules.numbers, old.c) ? { ...old, c: firstOf(rules.numbers, version) } : old;
  const target = jumpTarget(rules, base, known, latest);
  if (isPastTheEnd(rules, base.c, target)) return "EXHAUSTED";
  if (known > target) return "OPERATOR";
  const g = Math.max(base.g + 1, caller.gmin + 1, generationAt(latest));
  const phase = rules.design.claimFirst ? 1 : 0;
  return { c: target, t: later(base, clock, caller), ep: node.epoch, g, p: phase, sound: true };
}

/** An operator's verb: leaves the version of the record for the next one. */
export function advanceScript(rules: Rules, node: DataNode, clock: number, caller: Caller): Answer {
  const { design, numbers } = rules;
  const record = ours(rules, node, clock, caller);
  if (isRefusal(record)) return record;
  const version = versionOf(numbers, record.c);
  if (design.leavesAtEnd && lineEnds(numbers, version) > Math.min(clock, caller.clock)) return "EARLY";
  const isDoubted = isRefusal(checkHealthy(rules, node, clock, caller));
  const g = Math.max(record.g, caller.gmin) + 1;
  const p = isDoubted && design.advanceClaims ? 1 : 0;
  return { ...record, c: firstOf(numbers, version + 1), t: later(record, clock, caller), ep: node.epoch, g, p };
}

const NO_RECORD: StoreRecord = { c: 0, t: 0, ep: 0, g: 0, p: 1, sound: true };

/** Generations that claims can use up before a recovery in the next tick would give the same one: milliseconds, in the guard. */
export const GENERATIONS_A_TICK = 8;
export const generationAt = (tick: number): number => (tick + 1) * GENERATIONS_A_TICK;

/** The record, when it may be one of ours, the server is the one to ask, and no clock lies. */
function ours(rules: Rules, node: DataNode, clock: number, caller: Caller): Refusal | StoreRecord {
  const { record } = node;
  if (!record) return "EMPTY";
  if (rules.design.checksum && !record.sound) return "CORRUPT";
  const unfit = unfitness(rules, node, clock, caller);
  if (unfit) return unfit;
  if (Math.max(clock, caller.clock) < record.t - rules.numbers.eps) return "CLOCKBACK";
  return record;
}

function unfitness({ numbers }: Rules, node: DataNode, clock: number, caller: Caller): Refusal | undefined {
  if (!isMaster(node)) return "REPLICA";
  return Math.abs(clock - caller.clock) > numbers.eps ? "CLOCK" : undefined;
}

/** The record, when the store still remembers everything, as far as anybody can tell. */
function checkHealthy(rules: Rules, node: DataNode, clock: number, caller: Caller): Refusal | StoreRecord {
  const { design, numbers } = rules;
  const record = ours(rules, node, clock, caller);
  if (isRefusal(record)) return record;
  if (design.memory && record.g < caller.gmin) return "STALEGEN";
  if (design.epoch && record.ep !== node.epoch) return "EPOCH";
  if (record.p === 1) return "PENDING";
  if (design.gap && Math.max(clock, caller.clock) - record.t > numbers.gap) return "GAP";
  if (design.memory && record.c < caller.floor) return "ROLLBACK";
  return record;
}

function jumpTarget(
  { design, numbers }: Rules,
  record: { c: number; t: number },
  known: number,
  latest: number,
): number {
  const margin = design.marginEps * numbers.eps;
  const targets = {
    line: () => line(numbers, versionOf(numbers, record.c), latest + margin),
    // The first design believed that a record can't have missed more than its age at full rate, begun ticks included.
    age: () => known + (latest - record.t + margin + 1) * numbers.rate,
    none: () => known,
  };
  return targets[design.jump]();
}

/** Where a jump would land at or beyond the last run of the version: there is nothing to lease behind it. */
const isPastTheEnd = ({ numbers }: Rules, mark: number, target: number): boolean =>
  target >= lastOf(numbers, versionOf(numbers, mark));

const later = (record: StoreRecord, clock: number, caller: Caller): number => Math.max(record.t, clock, caller.clock);
