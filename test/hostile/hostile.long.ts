/**
 * The table of bad inputs: `npm run hostile`. Each row again and again for a while, beside an importer that leases run after run.
 * Fails when a row burnt a run, was taken for a good request, was answered otherwise than it should be, or left a secret in the log.
 */
import { expect, test } from "vitest";
import { wrappedLines } from "../figures-table.js";
import { type SignsOfLife, signsOfLife } from "../signs-of-life.js";
import { ALL_ROWS } from "./all-rows.js";
import { CoordinatorBeside } from "./coordinator-beside.js";
import { Neighbour } from "./neighbour.js";
import { playRow, type RowResult } from "./play-row.js";
import type { Row } from "./row.js";
import { tableOf, totalsOf } from "./table.js";
import { TLS_ROWS } from "./tls-rows.js";

const FOR_MS = 100;
const TURN_COUNT = 3;

test("bad inputs cost nothing", async () => {
  const signs = signsOfLife();
  const results = [
    ...(await played(ALL_ROWS, await CoordinatorBeside.start({ share: 1 }), signs)),
    ...(await played(TLS_ROWS, await CoordinatorBeside.start({ share: 1, isEncrypted: true }), signs)),
  ];
  signs.end();
  console.log(tableOf(results));
  console.log(`\n${wrappedLines(totalsOf(results))}`);
  expect(
    results.filter(({ problems }) => problems.length > 0).map(({ row, problems }) => [row.input, problems]),
  ).toEqual([]);
});

async function played(
  rows: readonly Row[],
  coordinator: CoordinatorBeside,
  signs: SignsOfLife,
): Promise<readonly RowResult[]> {
  const neighbour = new Neighbour(coordinator.target);
  const results: RowResult[] = [];
  for (const row of rows) {
    signs.show(`bad input ${results.length + 1} of ${rows.length}: ${row.family}: ${row.input}`);
    results.push(await playRow(row, coordinator, neighbour, { forMs: FOR_MS, turnCount: TURN_COUNT }));
  }
  return results;
}
