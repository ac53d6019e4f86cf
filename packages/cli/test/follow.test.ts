/** Commands that go on until Ctrl-C: `runs --follow` and `status --watch`. */
import { expect, test } from "vitest";
import { type RunningCommand, startCommand } from "../../../test/processes/command.js";
import { expectFailure, jsonLines, lease, NOWHERE, newCoordinator } from "./commands-for-test.js";

const linesOf = ({ output }: RunningCommand) => output().stdout.split("\n").slice(0, -1);

test("runs --follow lists the leases there are, then each new one, and ends with 0 at Ctrl-C", async () => {
  const { url, to } = await newCoordinator();
  await lease(url, { name: "first" });
  await lease(url, { name: "second", runCount: 2 });
  const following = startCommand(["runs", "--follow", "--limit", "2", ...to]);
  await expect.poll(() => linesOf(following)).toHaveLength(3);
  await lease(url, { name: "third" });
  await expect.poll(() => linesOf(following), { timeout: 10_000 }).toHaveLength(4);
  for (let count = 0; count < 3; count++) await lease(url, { name: "more" });
  await expect.poll(() => linesOf(following), { timeout: 10_000 }).toHaveLength(7);
  const [heading = "", ...rows] = linesOf(following);
  expect(heading).toMatch(/^RUNS +LEASED AT +HOLDER /);
  expect(rows.map((row) => row.split(" ", 1)[0])).toEqual(["1", "2-3", "4", "5", "6", "7"]);
  const names = rows.map((row) => row.slice(heading.indexOf("HOLDER")).split(" ", 1)[0]);
  expect(names).toEqual(["first", "second", "third", "more", "more", "more"]);
  expect(await following.stop("SIGINT")).toBe(0);
});

test("runs --follow applies its filters, and prints a line of JSON for each lease", async () => {
  const { url, to } = await newCoordinator();
  const following = startCommand(["runs", "--follow", "--json", "--holder", "wanted", ...to]);
  await lease(url, { name: "other" });
  await lease(url, { name: "wanted" });
  await lease(url, { name: "wanted" });
  await expect.poll(() => linesOf(following), { timeout: 10_000 }).toHaveLength(2);
  expect(jsonLines(following.output().stdout)).toMatchObject([{ firstRun: 2 }, { firstRun: 3 }]);
  expect(await following.stop("SIGINT")).toBe(0);
  expect(following.output().stderr).toBe("");
});

test("status --watch shows the state again after a lease, as text and as lines of JSON", async () => {
  const { url, to } = await newCoordinator();
  const asText = startCommand(["status", "--watch", ...to]);
  const asJson = startCommand(["status", "--watch", "--json", ...to]);
  await expect
    .poll(() => [asText, asJson].map(({ output }) => output().stdout))
    .toEqual([expect.stringContaining("no run leased yet"), expect.stringMatching(/^\{.*\}\n$/)]);
  await lease(url);
  await expect
    .poll(() => asText.output().stdout, { timeout: 10_000 })
    .toMatch(/\n\nnamespace main .*run 1, last lease/s);
  await expect
    .poll(() => jsonLines(asJson.output().stdout).at(-1), { timeout: 10_000 })
    .toMatchObject({
      highWaterMark: 1,
    });
  expect(await Promise.all([asText, asJson].map((one) => one.stop("SIGINT")))).toEqual([0, 0]);
});

test("a command that follows says once that the coordinator ended, and goes on until Ctrl-C", async () => {
  const { to, ...coordinator } = await newCoordinator();
  const watching = startCommand(["status", "--watch", ...to]);
  await expect.poll(() => watching.output().stdout).toContain("no run leased yet");
  await coordinator.stop();
  await expect
    .poll(() => watching.output().stderr, { timeout: 10_000 })
    .toMatch(/^callnumber: no coordinator answers .*\(coordinator_unreachable\); trying again\n$/);
  expect(await watching.stop("SIGINT")).toBe(0);
});

test("a command that follows fails where the first request does, and --watch takes no other view", async () => {
  await expectFailure(["runs", "--follow", "--coordinator", NOWHERE], 1, "coordinator_unreachable");
  await expectFailure(["status", "--watch", "--check"], 2, "--check");
  await expectFailure(["runs", "7", "--follow"], 2, "run 7 is one run: --follow is for a list");
});
