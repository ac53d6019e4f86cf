/** `callnumber recover --nodes`, run as an operator does: the number of data nodes of a healthy store in Redis changes. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "../../../test/processes/command.js";
import { until } from "../../../test/redis/redis-command.js";
import { follow } from "../../../test/redis/replicated-redis.js";
import { ownServerUnavailable, startRedisServer } from "../../../test/redis/test-redis.js";

interface Answer {
  readonly code?: string;
  readonly message?: string;
  readonly firstRun?: number;
}

async function lease({ url }: RunningCoordinator): Promise<Answer> {
  const holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
  const request = { runCount: 1, nonce: randomUUID(), holder, lastRun: null, receipt: null, sentAtMs: Date.now() };
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(request);
  return (await (await fetch(`${url}/v1/namespaces/main/leases`, { method: "POST", headers, body })).json()) as Answer;
}

function refusedWith(coordinator: RunningCoordinator, wanted: string): Promise<Answer> {
  return until(
    `a lease is refused with ${wanted}`,
    () => lease(coordinator),
    ({ code }) => code === wanted,
  );
}

async function leasedRun(coordinator: RunningCoordinator): Promise<number> {
  const isLeased = ({ firstRun }: Answer) => firstRun !== undefined;
  return Number((await until("a run is leased", () => lease(coordinator), isLeased)).firstRun);
}

test("recover --nodes counts an attached replica, and leasing continues above what was leased", async ({ skip }) => {
  const reason = ownServerUnavailable();
  if (reason !== undefined) skip(reason);
  const [master, replica] = await Promise.all([startRedisServer(), startRedisServer()]);
  const checkpoint = ["--checkpoint-dir", await folderForTest()];
  const place = ["--store", master.url, ...checkpoint];
  expect((await callnumber(["init", ...place])).code).toBe(0);
  const before = await serve(master.url, ...checkpoint);
  const run = await leasedRun(before);
  await follow(replica, master);
  const { message } = await refusedWith(before, "unexpected_replicas");
  expect(message).toMatch(/callnumber recover .*--nodes 2 --apply/);
  await before.stop();

  const recovered = await callnumber(["recover", "--nodes", "2", "--apply", ...place]);
  expect(recovered).toMatchObject({ code: 0, stdout: expect.stringMatching(/data nodes +2\n.*Done: /s) });
  const after = await serve(master.url, ...checkpoint);
  expect(await leasedRun(after)).toBeGreaterThan(run);
  expect((await callnumber(["status", "--coordinator", after.url])).stdout).toContain("2 data nodes");
  await replica.kill("SIGSTOP");
  await refusedWith(after, "quorum_missing");
});
