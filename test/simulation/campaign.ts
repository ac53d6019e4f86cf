/**
 * Many histories from one seed, one after the other: what was seen in them, and the first that broke a promise, made as short as fast-check
 * can make it. The same seed plays the same histories, in `npm test` as in `npm run simulate`.
 */

import fc from "fast-check";
import { CAUSES, type Cause, ELSEWHERE } from "../faults/refusal-codes.js";
import { askForLease } from "./faults/course.js";
import { Choices } from "./faults/kind.js";
import { heal } from "./healing.js";
import { type Focus, type History, histories, KINDS, type Step } from "./history.js";
import type { PromiseName, Tally, Violation } from "./importer.js";
import { type Rules, World } from "./world.js";

export const STEP_COUNT = 200;

export interface CampaignOptions {
  readonly seed: number;
  readonly historyCount: number;
  readonly rules: Rules;
  /** Which part of all histories; default all. */
  readonly focus?: Focus;
  /** The promise that is looked at; default all. */
  readonly promise?: PromiseName;
  /** Whether a history that breaks a promise is shortened, which takes some seconds. Default true. */
  readonly shrinks?: boolean;
  /** Hears now and then what was seen so far. */
  readonly progress?: (seen: Seen) => void;
}

export interface Broken {
  readonly history: History;
  readonly violation: Violation;
  /** What happens in it, line by line. */
  readonly story: readonly string[];
}

export interface Campaign {
  readonly seen: Seen;
  readonly broken: Broken | undefined;
}

/** A longer look for a shorter story would only keep its reader waiting. */
const SHRINK_TRIES_MAX = 4_000;
/** So often others of the process get their turn: the simulation itself waits for nothing but promises. */
const HISTORIES_PER_TURN = 50;

/** @throws Error for a broken invariant of the simulation itself. */
export async function runCampaign(options: CampaignOptions): Promise<Campaign> {
  const { seed, historyCount, rules, focus, shrinks = true, progress } = options;
  const seen = new Seen();
  let hasFailed = false;
  let shrinkTries = 0;
  const property = fc.asyncProperty(histories(STEP_COUNT, focus), async (history) => {
    if (hasFailed && ++shrinkTries > SHRINK_TRIES_MAX) return true;
    const played = await play(history, rules);
    if (!hasFailed) seen.add(played);
    if (isMeant(played.violation, options)) {
      hasFailed = true;
      return false;
    }
    if (!hasFailed && seen.historyCount % HISTORIES_PER_TURN === 0) {
      progress?.(seen);
      await othersTurn();
    }
    return true;
  });
  const { counterexample } = await withoutStacks(() =>
    fc.check(property, { seed, numRuns: historyCount, endOnFailure: !shrinks }),
  );
  return { seen, broken: counterexample === null ? undefined : await brokenBy(counterexample[0], rules) };
}

/** Plays a history alone and returns its story. @throws Error when it breaks nothing. */
async function brokenBy(history: History, rules: Rules): Promise<Broken> {
  const story: string[] = [];
  const { violation } = await play(history, { ...rules, onLine: (line) => story.push(line) });
  if (violation === undefined) throw new Error("broken invariant: the same history always ends in the same way");
  return { history, violation, story };
}

/** Returns what happened in a history that breaks a promise, and the history as JSON. */
export function reportOf({ history, violation, story }: Broken): string {
  return [
    `${violation.promise}: ${violation.words}`,
    "",
    ...story,
    "",
    "The same again: write the next line into a file, then npm run simulate -- --replay FILE",
    JSON.stringify(history),
  ].join("\n");
}

function isMeant(violation: Violation | undefined, { promise }: CampaignOptions): boolean {
  return violation !== undefined && (promise === undefined || violation.promise === promise);
}

/** Refusals are most of what a history makes, and their stacks are never read: stacks of them took a sixth of the time. */
async function withoutStacks<T>(act: () => Promise<T>): Promise<T> {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return await act();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

function othersTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

export interface Played {
  readonly world: World;
  readonly violation: Violation | undefined;
  /** How many steps were played: fewer than there are when a promise broke before. */
  readonly stepCount: number;
}

/** The first levels of flow let everything arrive; the others so few messages. */
const FLOWS = [Infinity, Infinity, Infinity, Infinity, Infinity, 0, 2, 8];

export async function play({ setting, steps }: History, rules: Rules): Promise<Played> {
  const world = new World(setting, rules);
  await world.begin();
  let stepCount = 0;
  const commands = steps.map((step) => new PlayedStep(step, () => stepCount++));
  await fc.asyncModelRun(() => ({ model: world.tally, real: world }), commands);
  if (world.tally.violation === undefined) await heal(world);
  return { world, violation: world.tally.violation, stepCount };
}

class PlayedStep implements fc.AsyncCommand<Tally, World> {
  constructor(
    readonly step: Step,
    readonly count: () => void,
  ) {}

  /** After a broken promise nothing more is to be learnt. */
  check({ violation }: Readonly<Tally>): boolean {
    return violation === undefined;
  }

  async run(_: Tally, world: World): Promise<void> {
    const { kind, a, b, flow } = this.step;
    this.count();
    // What can't be now is a request for a lease instead: a history has as many steps as it says.
    const isPlayed = (await KINDS[kind].play(world, new Choices(a), new Choices(b))) !== false;
    if (!isPlayed) askForLease(world, new Choices(a), new Choices(b));
    const played = isPlayed ? kind : "lease";
    world.played.set(played, (world.played.get(played) ?? 0) + 1);
    await world.settle(FLOWS[flow]);
  }

  toString(): string {
    return JSON.stringify(this.step);
  }
}

/** Refusals that importers can't meet in a simulated world, or hardly ever; all others must have been met. */
const UNMET: Readonly<Partial<Record<Cause, string>>> = {
  ...ELSEWHERE,
  heartbeat_expired: "settled by the guard itself, in all but one of many thousand histories",
  rolled_back: "settled by the guard itself, in all but one of a thousand histories",
  store_forked:
    "takes two masters that lease and an importer that meets both: in one of some hundred to many thousand histories",
  namespace_exists: "init is run once",
  coordinator_still_running: "an answer to operators only",
  unexpected_replicas: "every node is counted (A2), unless the count is edited, which is a corrupt record",
  store_id_mismatch: "one store (A4)",
  store_mismatch: "an answer to requests for numbers",
  store_schema_unsupported: "one release",
  store_epoch_unreadable: "INFO can always be read",
  store_eviction_enabled: "of preflight",
  store_copied: "of the embedded store",
  store_locked: "of the embedded store",
  store_not_found: "of the embedded store",
  checkpoint_unavailable: "of the command line",
};

/** Histories in which even the rarest kind of step is played in about fifty: in 80 of them, 1 seed in 25 misses a kind. */
const KINDS_PLAYED_AFTER = 1_000;
/** Histories in which even the rarest other refusal is met about twenty times. */
const REFUSALS_MET_AFTER = 10_000;

class Seen {
  historyCount = 0;
  stepCount = 0;
  leaseCount = 0;
  runCount = 0;
  /** How many numbers the control was given again: by INCR, and by INCR with WAIT. */
  controlRepeatCount = 0;
  waitedControlRepeatCount = 0;
  readonly played = new Map<string, number>();
  readonly refusals = new Map<string, number>();
  /** A request is seldom rejected with what a recovery heals before. */
  readonly recoveries = new Map<string, number>();

  add({ world, stepCount }: Played): void {
    const { tally, played, refusals, recoveries } = world;
    this.historyCount++;
    this.stepCount += stepCount;
    this.leaseCount += tally.leases.length;
    this.runCount += tally.runCount;
    this.controlRepeatCount += tally.controlRepeats;
    this.waitedControlRepeatCount += tally.waitedControlRepeats;
    addAll(this.played, played);
    addAll(this.refusals, refusals);
    addAll(this.recoveries, recoveries);
  }

  /** Why nothing is proved by what was seen; empty when it was as much as so many histories always show. */
  get gaps(): readonly string[] {
    const kinds = this.historyCount >= KINDS_PLAYED_AFTER ? Object.keys(KINDS) : [];
    const codes = this.historyCount >= REFUSALS_MET_AFTER ? CAUSES.filter((code) => !(code in UNMET)) : [];
    return [
      ...kinds.flatMap((kind) => (this.played.has(kind) ? [] : [`no ${kind} was played`])),
      ...codes.flatMap((code) =>
        this.refusals.has(code) || this.recoveries.has(code) ? [] : [`nothing was rejected or recovered with ${code}`],
      ),
      ...(this.leaseCount < this.historyCount ? ["there were fewer leases than histories"] : []),
      ...(this.controlRepeatCount === 0 ? ["INVALID: the control, a plain INCR, repeated nothing"] : []),
      ...(this.waitedControlRepeatCount === 0 ? ["INVALID: the control, INCR with WAIT, repeated nothing"] : []),
    ];
  }

  /** For people. */
  toString(): string {
    return [
      `histories ${this.historyCount}, steps ${this.stepCount}, leases ${this.leaseCount}, runs ${this.runCount}`,
      `repeats of the control: INCR ${this.controlRepeatCount}, INCR with WAIT ${this.waitedControlRepeatCount}`,
      `steps: ${countsIn(this.played)}`,
      `refusals: ${countsIn(this.refusals)}`,
      `recoveries: ${countsIn(this.recoveries)}`,
    ].join("\n");
  }
}

function addAll(sums: Map<string, number>, counts: ReadonlyMap<string, number>): void {
  for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count);
}

function countsIn(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .sort()
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}
