/**
 * The model's rules are the guard's: random states of the model are played on its scripts and on the decisions that every store
 * obeys, and word, mark, time, epoch, generation and phase must be the same. packages/coordinator/test/scripts-and-decisions.test.ts
 * does the same for the decisions and the Lua scripts.
 * Guarantees: G3, G4 (docs/guarantees.md).
 */
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { decide } from "../../packages/coordinator/src/guard/decide.js";
import { isRefusal as isRefused } from "../../packages/coordinator/src/guard/refusals.js";
import { verifyAboveHighWaterMark, verifyOutcome } from "../../packages/coordinator/src/guard/verify-outcome.js";
import { type LeaseStep, type Outcome, type StepCommand } from "../../packages/coordinator/src/stores/store.js";
import { handOut, lease as leaseOf } from "./coordinator-steps.js";
import { changed } from "./coordinators.js";
import * as guard from "./correspondence.js";
import { FULL_DESIGN, type Numbers } from "./design.js";
import { written } from "./replication.js";
import {
  type Answer,
  advanceScript,
  type Caller,
  claimScript,
  confirmScript,
  generationAt,
  isRefusal,
  leaseScript,
  type Rules,
  recoverScript,
  touchScript,
} from "./scripts.js";
import { at, type DataNode, firstWorld, NOBODY } from "./world.js";

const PLAY_COUNT = 20_000;
/** Some answers are rare: what the plays of one seed have not met, those of the next may. */
const SEED_COUNT_MAX = 10;
const TICK_MAX = 6;

/** Mostly few, so that what is compared is often equal or one apart. */
const few = fc.integer({ min: 0, max: 3 });
const tick = fc.oneof({ weight: 3, arbitrary: few }, { weight: 1, arbitrary: fc.integer({ min: 0, max: TICK_MAX }) });
const generation = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: few.map((after) => generationAt(1) + after) },
);
const numbers = fc.record({
  rate: fc.integer({ min: 1, max: 2 }),
  burst: few.map((burst) => burst + 1),
  eps: fc.constantFrom(0, 0, 1, 2),
  gap: fc.integer({ min: 1, max: 4 }),
  space: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 4, 6, 9),
});
const record = fc.record({
  c: tick,
  t: tick,
  ep: fc.constantFrom(1, 1, 1, 2),
  g: generation,
  p: fc.constantFrom(0, 0, 0, 1),
  sound: fc.constantFrom(true, true, true, true, true, false),
});

const play = fc.record({
  numbers,
  step: fc.constantFrom("lease", "leaseAll", "touch", "claim", "confirm", "recover", "advance"),
  record: fc.option(record, { nil: null, freq: 12 }),
  follows: fc.constantFrom(NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, 2),
  clock: tick,
  callersClockAhead: fc.constantFrom(0, 0, 0, 0, -1, 1, 2),
  floor: fc.oneof(fc.constant(0), tick),
  gmin: fc.oneof(fc.constant(0), generation),
  /** The generation that the caller saw, from the record's own. */
  seen: fc.constantFrom(0, 0, 0, 1, -1),
});
type Play = typeof play extends fc.Arbitrary<infer T> ? T : never;

test("every script answers as the guard decides, whatever the record, the server, the clocks and the caller", () => {
  const met = new Set<string>();
  const unmet = () => ALL_ANSWERS.filter((answer) => !met.has(answer));
  for (let count = 0; count < SEED_COUNT_MAX && (count === 0 || unmet().length > 0); count++) {
    playAll(inject("seed") + count, met);
  }
  expect(unmet()).toEqual([]);
});

function playAll(seed: number, met: Set<string>): void {
  fc.assert(
    fc.property(play, (drawn) => {
      const played = withinVersion(drawn);
      const answer = playedInModel(played);
      const decided = decide(
        guard.situationOf(played.numbers, nodeOf(played), played.clock, callerOf(played).clock),
        commandOf(played),
      );
      met.add(`${played.step} ${isRefusal(answer) ? answer : "done"}`);
      if (isRefusal(answer) || isRefused(decided)) {
        expect(isRefused(decided) ? decided.word : "done").toBe(isRefusal(answer) ? answer : "done");
        return;
      }
      const { highWaterMark: mark, ...rest } = decided.record;
      const { highWaterMark: markInModel, ...restInModel } = guard.guardRecordOf(played.numbers, answer);
      expect(rest).toEqual(restInModel);
      // The model leases all the room there may be; the guard a small part of it.
      if (played.step === "leaseAll") expect(mark).toBeLessThanOrEqual(markInModel);
      else expect(mark).toBe(markInModel);
    }),
    { seed, numRuns: PLAY_COUNT },
  );
}

/** Of a later version the model's line and the guard's burst differ: records, and what a recovery is told, are of the first one. */
function withinVersion(drawn: Play): Play {
  const { space } = drawn.numbers;
  const { record: found, step, floor } = drawn;
  return {
    ...drawn,
    record: found && { ...found, c: Math.min(found.c, space - 1) },
    floor: step === "recover" ? Math.min(floor, space - 1) : floor,
  };
}

const OURS = ["EMPTY", "CORRUPT", "REPLICA", "CLOCK", "CLOCKBACK", "done"];
const UNDOUBTED = [...OURS, "STALEGEN", "EPOCH", "PENDING", "GAP", "ROLLBACK"];
/** All that each step can answer. */
const ALL_ANSWERS: readonly string[] = [
  ...[...UNDOUBTED, "AHEAD", "EXHAUSTED"].flatMap((word) => [`lease ${word}`, `leaseAll ${word}`]),
  ...UNDOUBTED.map((word) => `touch ${word}`),
  ...[...OURS, "RACED"].map((word) => `claim ${word}`),
  ...[...OURS, "RACED", "OPERATOR", "EXHAUSTED"].map((word) => `confirm ${word}`),
  ...[...OURS, "EARLY"].map((word) => `advance ${word}`),
  ...["REPLICA", "CLOCK", "CLOCKBACK", "OPERATOR", "EXHAUSTED", "done"].map((word) => `recover ${word}`),
];

const rulesOf = (given: Numbers): Rules => ({ design: FULL_DESIGN, numbers: given, touches: true });
const callerOf = ({ floor, gmin, clock, callersClockAhead }: Play): Caller => ({
  floor,
  gmin,
  clock: Math.max(clock + callersClockAhead, 0),
});
const seenBy = ({ record: found, seen }: Play): number => Math.max((found?.g ?? 1) + seen, 0);

function nodeOf({ record: found, follows }: Play): DataNode {
  return { ...at(firstWorld().nodes, 0), record: found, follows, epoch: 1 };
}

function playedInModel(played: Play): Answer {
  const [rules, node, caller] = [rulesOf(played.numbers), nodeOf(played), callerOf(played)];
  const { clock } = played;
  const scripts: Record<Play["step"], () => Answer> = {
    lease: () => leaseScript(rules, node, clock, caller, 1),
    leaseAll: () => leaseScript(rules, node, clock, caller, Number.POSITIVE_INFINITY),
    touch: () => touchScript(rules, node, clock, caller),
    claim: () => claimScript(rules, node, clock, caller, seenBy(played)),
    confirm: () => confirmScript(rules, node, clock, caller, seenBy(played)),
    recover: () => recoverScript(rules, node, clock, caller),
    advance: () => advanceScript(rules, node, clock, caller),
  };
  return scripts[played.step]();
}

function commandOf(played: Play): StepCommand {
  const base = { storeId: guard.storeIdOf(played.numbers), nonce: "nonce", isSilenceAccepted: false };
  const remembered = {
    floor: guard.runOf(played.numbers, played.floor),
    generationMin: guard.generationOf(played.gmin),
  };
  const holder = { name: "importer", host: "host", pid: 1, labels: {} };
  const asked: LeaseStep = {
    ...base,
    ...remembered,
    step: "lease",
    runCount: 1,
    held: 0,
    holder,
    coordinator: "K1",
    leaseNonce: "nonce",
  };
  const seen = guard.generationOf(seenBy(played));
  const commands: Record<Play["step"], StepCommand> = {
    lease: asked,
    leaseAll: { ...asked, runCount: 64 },
    touch: { ...base, ...remembered, step: "touch" },
    claim: { ...base, ...remembered, step: "claim", generation: seen },
    confirm: { ...base, ...remembered, step: "confirm", generation: seen },
    recover: { ...base, ...remembered, step: "recover", nodeCount: guard.NODE_COUNT, receiptKey: guard.RECEIPT_KEY },
    advance: { ...base, ...remembered, step: "advance", version: 0 },
  };
  return commands[played.step];
}

test("a range is handed out in the model exactly when the guard's judge lets it pass", () => {
  const given: Numbers = { rate: 1, burst: 4, eps: 0, gap: 3, space: Number.POSITIVE_INFINITY };
  const rules = rulesOf(given);
  const verdicts = new Set<boolean>();
  const judged = fc.record({
    asked: fc.integer({ min: 1, max: 2 }),
    acknowledged: fc.boolean(),
    g: fc.constantFrom(1, 1, 2),
    floor: few,
  });
  fc.assert(
    fc.property(judged, ({ asked, acknowledged, g, floor }) => {
      const leased = leaseOf(firstWorld(), rules, 0, asked).world;
      const { record: after } = at(leased.nodes, 0);
      if (!after) throw new Error("the lease left no record");
      const later = written(leased, 0, { ...after, g });
      const waiting = changed(later, 0, { ...at(later.coordinators, 0), acknowledged, floor });
      // Without an acknowledgement a coordinator can only give up.
      const isHandedOut = acknowledged && handOut(waiting, rules, 0).world.handedOut !== 0;
      const {
        highWaterMark,
        changedAtMs,
        epoch,
        generation: left,
        nodeCount,
        storeId,
      } = guard.guardRecordOf(given, after);
      const outcome: Outcome = {
        after: {
          nonce: "nonce",
          storeId,
          version: 0,
          highWaterMark,
          changedAtMs,
          epoch,
          generation: left,
          nodeCount,
        },
        runCount: asked,
        acknowledgedCount: acknowledged ? 1 : 0,
        check: { nonce: "nonce", role: "master", epoch, generation: guard.generationOf(g) },
      };
      const command = { storeId, nonce: "nonce" } as StepCommand;
      const passes = () => {
        verifyOutcome(outcome, command);
        verifyAboveHighWaterMark(outcome, guard.runOf(given, floor), guard.timeOf(0), given.eps);
      };
      verdicts.add(isHandedOut);
      if (isHandedOut) expect(passes).not.toThrow();
      else expect(passes).toThrow();
    }),
  );
  expect(verdicts.size).toBe(2);
});
