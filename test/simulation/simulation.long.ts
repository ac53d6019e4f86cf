/**
 * The long form of the simulation: `npm run simulate -- --histories 1000000 --seed 1`, or one history again with the line that a failed run
 * printed: `npm run simulate -- --replay FILE`.
 */
import { readFileSync } from "node:fs";
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import { play, reportOf, runCampaign, STEP_COUNT } from "./campaign.js";
import type { History } from "./history.js";
import { THE_GUARD } from "./variants.js";

const HISTORY_COUNT = Number(env["CALLNUMBER_HISTORIES"] ?? 100_000);
const PROGRESS_EVERY = 10_000;
const REPLAY = env["CALLNUMBER_REPLAY"];
const rules = { variant: THE_GUARD, lifted: new Set<never>() };

test.runIf(REPLAY !== undefined)(`the history in ${REPLAY} breaks no promise`, async () => {
  const history = JSON.parse(readFileSync(REPLAY as string, "utf8")) as History;
  const { violation } = await play(history, { ...rules, onLine: (line) => console.log(line) });
  expect(violation).toBeUndefined();
});

test.runIf(REPLAY === undefined)(
  `no promise is broken in ${HISTORY_COUNT} histories of ${STEP_COUNT} steps`,
  async () => {
    const seed = inject("seed");
    const startedMs = performance.now();
    const { seen, broken } = await runCampaign({
      seed,
      historyCount: HISTORY_COUNT,
      rules,
      progress: ({ historyCount }) => {
        if (historyCount % PROGRESS_EVERY === 0) console.log(`${historyCount} of ${HISTORY_COUNT} histories`);
      },
    });
    const rate = (seen.historyCount * 1_000) / (performance.now() - startedMs);
    console.log(`${seen}\n\nseed ${seed}, ${rate.toFixed(0)} histories/s`);
    expect.assert(broken === undefined, broken && reportOf(broken));
    expect(seen.gaps).toEqual([]);
  },
);
