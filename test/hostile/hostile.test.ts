/** Bad inputs against a real coordinator, each once, beside another caller: none of them burns a run. */
import { expect, inject, test } from "vitest";
import { IS_WHOLE } from "../size-of-run.js";
import { SHORT_ROWS } from "./all-rows.js";
import { CoordinatorBeside } from "./coordinator-beside.js";
import { Neighbour } from "./neighbour.js";
import { playRow } from "./play-row.js";
import type { Row } from "./row.js";
import { TLS_ROWS } from "./tls-rows.js";

const SHARE = 0.03;
/** One of so many is played in `npm test`, which one is for the seed. */
const SAMPLE_OF = 5;

test("no bad input burns a run, is taken for a good one, or leaves a trace that hurts; another caller goes on leasing", async () => {
  expect(SHORT_ROWS.length).toBeGreaterThanOrEqual(120);
  const coordinator = await CoordinatorBeside.start({ share: SHARE, parameters: ["--connections", "100"] });
  expect(await problemsOf(sampleOf(SHORT_ROWS), coordinator)).toEqual([]);
});

test("what is no TLS ends at the port where TLS is spoken, and costs nothing", async () => {
  const coordinator = await CoordinatorBeside.start({ share: SHARE, isEncrypted: true });
  expect(await problemsOf(sampleOf(TLS_ROWS), coordinator)).toEqual([]);
});

function sampleOf(rows: readonly Row[]): readonly Row[] {
  return rows.filter((_, index) => IS_WHOLE || index % SAMPLE_OF === inject("seed") % SAMPLE_OF);
}

async function problemsOf(rows: readonly Row[], coordinator: CoordinatorBeside): Promise<readonly string[]> {
  const neighbour = new Neighbour(coordinator.target);
  const told: string[] = [];
  for (const row of rows) {
    const { problems } = await playRow(row, coordinator, neighbour, { forMs: 0, turnCount: 1 });
    if (problems.length > 0) told.push(`${row.family}: ${row.input}: ${problems.join("; ")}`);
  }
  return told;
}
