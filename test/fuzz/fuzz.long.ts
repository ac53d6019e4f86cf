/**
 * The long form of the fuzzing: `npm run fuzz -- --minutes 10 --target codec --seed 1`. All targets in turn, each turn with the next seed,
 * until the time is over. One finding again, from its file: `npm run fuzz -- --replay FILE`.
 */
import { readFileSync } from "node:fs";
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import { figuresTable } from "../figures-table.js";
import { signsOfLife } from "../signs-of-life.js";
import { FINDINGS_FOLDER, type Finding, playAgain, runCampaign, savedFinding } from "./campaign.js";
import { TARGETS } from "./targets.js";

const MINUTES = Number(env["CALLNUMBER_MINUTES"] ?? 10);
const REPLAY = env["CALLNUMBER_REPLAY"];
const NAMED = env["CALLNUMBER_TARGET"];
/** Short, so that each target has had a turn soon, and began anew often. */
const TURN_MAX_MS = 15_000;
/** Seeds of turns lie below it, as those of runs do. */
const SEED_LIMIT = 2 ** 31;

const targets = TARGETS.filter(({ name }) => NAMED === undefined || name === NAMED);

test.runIf(REPLAY !== undefined)(`the finding in ${REPLAY} breaks nothing any more`, async () => {
  const finding = JSON.parse(readFileSync(REPLAY as string, "utf8")) as Finding;
  const target = TARGETS.find(({ name }) => name === finding.target);
  expect.assert(target !== undefined, `there is no target "${finding.target}"`);
  await playAgain(target, finding);
});

test.runIf(REPLAY === undefined)(`nothing is found in ${MINUTES} minutes`, async () => {
  expect.assert(targets.length > 0, `there is no target "${NAMED}": ${TARGETS.map(({ name }) => name).join(", ")}`);
  const wholeMs = MINUTES * 60_000;
  const endsMs = performance.now() + wholeMs;
  // A short run tries all of them, too.
  const turnMs = Math.min(TURN_MAX_MS, wholeMs / targets.length);
  const counts = new Map<string, number>();
  const signs = signsOfLife();
  for (let turn = 0; performance.now() < endsMs; turn++) {
    for (const target of targets) {
      const turnEndsMs = Math.min(performance.now() + turnMs, endsMs);
      const { inputCount, finding } = await runCampaign(target, {
        seed: (inject("seed") + turn) % SEED_LIMIT,
        goesOn: (number) => {
          const leftSeconds = Math.max(0, (endsMs - performance.now()) / 1_000).toFixed(0);
          signs.show(`${target.name}: ${(counts.get(target.name) ?? 0) + number} inputs; ${leftSeconds} s to go`);
          return performance.now() < turnEndsMs;
        },
      });
      counts.set(target.name, (counts.get(target.name) ?? 0) + inputCount);
      expect.assert(finding === undefined, finding && savedFinding(finding, FINDINGS_FOLDER));
    }
  }
  signs.end();
  const rows = Array.from(counts, ([name, count]) => ({ figures: [count], words: name }));
  console.log(figuresTable(["inputs"], rows));
});
