/** Every situation in which a command is printed: run as printed, it ends in leasing. `npm run remedies`; -- --target TEXT for those with it in their name */
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import type { RedisBinary } from "../redis/redis-binary.js";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { SITUATIONS, type StepContext } from "./situations.js";
import { type Walked, walksFrom, withoutValues } from "./walk.js";

/** Most of the time of a walk is waiting. */
const CONCURRENT_WALKS = 8;

test("every printed command, run as printed, leads to leasing within three steps", async ({ skip }) => {
  const { binary } = inject("redis");
  if (binary === undefined) return skip(ownServerUnavailable());
  const wanted = SITUATIONS.filter(({ name }) => name.includes(env["CALLNUMBER_TARGET"] ?? ""));
  const walked = await walkAll(wanted, binary);
  console.log(summaryOf(walked));
  expect(problemsOf(walked)).toEqual([]);
});

async function walkAll(situations: readonly StepContext[], binary: RedisBinary): Promise<readonly Walked[]> {
  const left = [...situations];
  const walked: Walked[] = [];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift())
      walked.push(...(await walksFrom(next, binary)));
  };
  await Promise.all(Array.from({ length: CONCURRENT_WALKS }, worker));
  return walked;
}

function summaryOf(walked: readonly Walked[]): string {
  const commands = new Set(walked.flatMap(({ commands }) => commands.map(withoutValues)));
  const steps = Math.max(0, ...walked.map(({ commands }) => commands.length));
  const situations = new Set(walked.map(({ name }) => name)).size;
  const circles = walked.filter(({ isCircle }) => isCircle).length;
  return [
    `situations ${situations}, walks ${walked.length}, distinct commands ${commands.size}, steps to healthy at most ${steps}, circles ${circles}`,
    ...[...commands].sort().map((command) => `  ${command}`),
  ].join("\n");
}

/** What went wrong, for people. */
function problemsOf(walked: readonly Walked[]): readonly string[] {
  return walked.flatMap(({ name, surface, commands, problems }) =>
    problems.map((problem) => `${name}, by ${surface || "no surface"}, after [${commands.join(" ; ")}]: ${problem}`),
  );
}
