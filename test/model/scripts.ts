/**
 * The scripts that run inside the data server, each one atomic step: lease, claim, confirm, recover.
 * They see the record, the server's epoch and two clocks, and know nothing of coordinators, replication or faults.
 * The order of the refusals is that of the guard; refusals of arguments, foreign records and limits of 2^30 are left out.
 */
import { type Design, line, type Numbers } from "./design.js";
import { type DataNode, isMaster, type StoreRecord } from "./world.js";

export interface Rules {
  readonly design: Design;
  readonly numbers: Numbers;
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
export type Refusal = Doubt | "EMPTY" | "CORRUPT" | "REPLICA" | "CLOCK" | "CLOCKBACK" | "AHEAD" | "RACED" | "OPERATOR";

/** A script either refuses and changes nothing, or answers the record as it has written it. */
export type Answer = Refusal | StoreRecord;

export const isRefusal = (answer: Answer): answer is Refusal => typeof answer === "string";
export const isDoubt = (answer: Answer): answer is Doubt => (DOUBTS as readonly Answer[]).includes(answer);

/** Leases up to `asked` runs from the old mark upwards; the new mark is the last of them. */
export function leaseScript(rules: Rules, node: DataNode, clock: number, caller: Caller, asked: number): Answer {
  const { design, numbers } = rules;
  const refusal = refusalOfAll(rules, node, clock, caller);
  if (refusal) return refusal;
  const record = node.record as StoreRecord;
  const [low, high] = ordered(clock, caller.clock);
  if (design.memory && record.g < caller.gmin) return "STALEGEN";
  if (design.epoch && record.ep !== node.epoch) return "EPOCH";
  if (record.p === 1) return "PENDING";
  if (design.gap && high - record.t > numbers.gap) return "GAP";
  if (design.memory && record.c < caller.floor) return "ROLLBACK";
  const room = design.jump === "age" ? (low - record.t) * numbers.rate : line(numbers, low) - record.c;
  const runCount = Math.min(asked, room);
  if (runCount < 1 || !design.leases) return "AHEAD";
  return { ...record, c: record.c + runCount, t: Math.max(high, record.t) };
}

/** Takes the store for the caller, who saw generation `g`: nobody leases from this record before a confirmation. */
export function claimScript(rules: Rules, node: DataNode, clock: number, caller: Caller, g: number): Answer {
  const refusal = refusalOfAll(rules, node, clock, caller);
  if (refusal) return refusal;
  const record = node.record as StoreRecord;
  if (record.g !== g) return "RACED";
  const claimed = { ...record, ep: node.epoch, g: Math.max(g, caller.gmin) + 1, p: 1 };
  return rules.design.claimFirst ? claimed : confirmScript(rules, { ...node, record: claimed }, clock, caller, claimed.g);
}

/** Raises the counter past everything that any copy of the store can have leased, and opens the store. */
export function confirmScript(rules: Rules, node: DataNode, clock: number, caller: Caller, g: number): Answer {
  const refusal = refusalOfAll(rules, node, clock, caller);
  if (refusal) return refusal;
  const record = node.record as StoreRecord;
  if (record.g !== g || record.p !== 1 || (rules.design.epoch && record.ep !== node.epoch)) return "RACED";
  const known = Math.max(record.c, rules.design.memory ? caller.floor : 0);
  const target = jumpTarget(rules, record, known, Math.max(clock, caller.clock));
  if (known > target) return "OPERATOR";
  return { ...record, c: target, p: 0, t: later(record, clock, caller) };
}

/** An operator's verb, for a record that is lost or too low; the pin that he gives stands for the caller's floor. */
export function recoverScript(rules: Rules, node: DataNode, clock: number, caller: Caller): Answer {
  const refusal = refusalOfAll(rules, node, clock, caller);
  if (refusal && refusal !== "EMPTY") return refusal;
  const { record } = node;
  const high = Math.max(clock, caller.clock);
  const known = Math.max(record?.c ?? 0, caller.floor);
  const t = Math.max(high, record?.t ?? 0);
  // A generation of its own, as the time in milliseconds is in the guard: above every count of claims so far.
  const g = Math.max((record?.g ?? 0) + 1, (clock + 1) * GENERATIONS_A_TICK);
  const raised = { t, ep: node.epoch, g, sound: true, c: Math.max(known, jumpTarget(rules, { c: known, t }, known, high)) };
  return { ...raised, p: rules.design.claimFirst ? 1 : 0 };
}

/** Generations that claims can use up before the next tick's recovery would have the same one. */
export const GENERATIONS_A_TICK = 8;

function refusalOfAll({ design, numbers }: Rules, node: DataNode, clock: number, caller: Caller): Refusal | undefined {
  const { record } = node;
  if (!isMaster(node)) return "REPLICA";
  if (!record) return "EMPTY";
  if (design.checksum && !record.sound) return "CORRUPT";
  if (Math.abs(clock - caller.clock) > numbers.eps) return "CLOCK";
  if (Math.max(clock, caller.clock) < record.t - numbers.eps) return "CLOCKBACK";
  return undefined;
}

function jumpTarget({ design, numbers }: Rules, record: { c: number; t: number }, known: number, high: number): number {
  const margin = design.marginEps * numbers.eps;
  const targets = {
    line: () => line(numbers, high + margin),
    // The first design believed that a record can't have missed more than its age at full rate, begun ticks included.
    age: () => known + (high - record.t + margin + 1) * numbers.rate,
    none: () => known,
  };
  return targets[design.jump]();
}

const ordered = (one: number, other: number): [low: number, high: number] =>
  one < other ? [one, other] : [other, one];
const later = (record: StoreRecord, clock: number, caller: Caller): number => Math.max(record.t, clock, caller.clock);
