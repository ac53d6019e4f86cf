/** Situations in which a command is printed: run as printed, it ends in leasing. The others are run by `npm run remedies`. */
import { expect, inject, test } from "vitest";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { problemsOf, summaryOf, walkAll } from "./campaign.js";
import { SITUATIONS } from "./situations.js";

test("a printed command, run as printed, leads to leasing within three steps", async ({ skip }) => {
  const { binary } = inject("redis");
  if (binary === undefined) return skip(ownServerUnavailable());
  const walked = await walkAll(
    SITUATIONS.filter(({ isShort }) => isShort),
    binary,
    { isShort: true },
  );
  console.log(summaryOf(walked));
  expect(problemsOf(walked)).toEqual([]);
});
