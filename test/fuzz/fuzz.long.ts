/**
 * The long form of the fuzzing: `npm run fuzz -- --minutes 10 --target codec --seed 1`. All targets in turn, each turn with the next seed,
 * until the time is over. One finding again, from its file: `npm run fuzz -- --replay FILE`.
 */
import { readFileSync } from "node:fs";
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import { type Finding, fuzz, TARGETS } from "./campaign.js";

const MINUTES = Number(env["CALLNUMBER_MINUTES"] ?? 10);
const REPLAY = env["CALLNUMBER_REPLAY"];
const TARGET = env["CALLNUMBER_TARGET"];
/** Short, so that each target has a turn soon, and begins again often. */
const TURN_MAX_MS = 15_000;
/** Seeds of turns lie below it, as those of runs do. */
const SEED_LIMIT = 2 ** 31;

test.runIf(REPLAY !== undefined)(`the finding in ${REPLAY} breaks nothing any more`, async () => {
  const finding = JSON.parse(readFileSync(REPLAY as string, "utf8")) as Finding;
  const target = TARGETS.find(({ name }) => name === finding.target);
  expect.assert(target !== undefined, `there is no target "${finding.target}"`);
  await (await target.start()).check(Buffer.from(finding.inputHex, "hex"));
});

test.runIf(REPLAY === undefined)(`nothing is found in ${MINUTES} minutes`, async () => {
  const targets = TARGETS.filter(({ name }) => TARGET === undefined || name === TARGET);
  expect.assert(targets.length > 0, `there is no target "${TARGET}": ${TARGETS.map(({ name }) => name).join(", ")}`);
  const wholeMs = MINUTES * 60_000;
  const endsMs = performance.now() + wholeMs;
  // A short run tries all of them, too.
  const turnMs = Math.min(TURN_MAX_MS, wholeMs / targets.length);
  for (let turn = 0; performance.now() < endsMs; turn++) {
    for (const target of targets) {
      const turnEndsMs = Math.min(performance.now() + turnMs, endsMs);
      const seed = (inject("seed") + turn) % SEED_LIMIT;
      const count = await fuzz(target, seed, () => performance.now() < turnEndsMs);
      console.log(`${target.name}: ${count} inputs`);
    }
  }
});
