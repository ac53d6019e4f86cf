/** Every situation in which a command is printed: run as printed, it ends in leasing. `npm run remedies`; -- --target TEXT for those with it in their name */
import { env } from "node:process";
import { expect, inject, test } from "vitest";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { problemsOf, summaryOf, walkAll } from "./campaign.js";
import { SITUATIONS } from "./situations.js";

test("every printed command, run as printed, leads to leasing within three steps", async ({ skip }) => {
  const { binary } = inject("redis");
  if (binary === undefined) return skip(ownServerUnavailable());
  const wanted = SITUATIONS.filter(({ name }) => name.includes(env["CALLNUMBER_TARGET"] ?? ""));
  const walked = await walkAll(wanted, binary);
  console.log(summaryOf(walked));
  expect(problemsOf(walked)).toEqual([]);
});
