/**
 * Many histories from one seed, one after the other: what was seen in them, and the first that broke a promise, made as short as fast-check
 * can make it. The same seed plays the same histories, in `npm test` as in `npm run simulate`.
 */
import fc from "fast-check";
import { type Focus, type History, histories } from "./history.js";
import { play } from "./play.js";
import { Seen } from "./seen.js";
import type { PromiseName, Violation } from "./tally.js";
import type { Rules } from "./world.js";

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

/** Plays a history alone and tells it. @throws Error when it breaks nothing. */
export async function brokenBy(history: History, rules: Rules): Promise<Broken> {
  const story: string[] = [];
  const { violation } = await play(history, { ...rules, hear: (line) => story.push(line) });
  if (violation === undefined) throw new Error("broken invariant: the same history always ends in the same way");
  return { history, violation, story };
}

/** For whoever has to find out why: the story, and the history as JSON. */
export function told({ history, violation, story }: Broken): string {
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

/** Refusals are most of what a history makes, and nobody reads where they were made: stacks of them took a sixth of the time. */
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
