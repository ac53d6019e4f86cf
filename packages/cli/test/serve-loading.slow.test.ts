/** `serve` between the moment that it listens and the one that all its routes are loaded. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createClient } from "@callnumber/client";
import { expect, test } from "vitest";
import { folderForTest, serveProcessWith } from "../../../test/processes/command.js";
import { jsonLines } from "./commands-for-test.js";

const HOOK = pathToFileURL(join(import.meta.dirname, "held-framework.mjs")).href;
/** As in-flight-limits.ts. */
const WAITING_MAX = 256;

/** A coordinator that listens, and whose other routes are loaded after `load`, or fail to. */
async function servedWithoutFramework() {
  const folder = await folderForTest();
  const until = join(folder, "loads");
  const env = { NODE_OPTIONS: `--import=${HOOK}`, HELD_UNTIL: until };
  const coordinator = await serveProcessWith({ env }, `sqlite:${join(folder, "store.db")}`, "--create");
  const isAnswered = (response: Promise<unknown>) =>
    Promise.race([response.then(() => true), leased(coordinator.url).then(() => false)]);
  const begun = `${until}.begun`;
  const begunAtMs = () => (existsSync(begun) ? Number(readFileSync(begun, "utf8")) : undefined);
  const load = (fault = "") => {
    // The process must not see the file before its text.
    writeFileSync(`${until}.written`, fault);
    renameSync(`${until}.written`, until);
  };
  return { ...coordinator, isAnswered, begunAtMs, load };
}

async function leased(url: string): Promise<string> {
  const client = createClient({ coordinator: url, holder: { name: "early" } });
  const callNumber = await client.next();
  await client.close();
  return callNumber;
}

test("serve answers leases and reports before its other routes are loaded, and the others when they are", async () => {
  const { url, isAnswered, load } = await servedWithoutFramework();
  const health = fetch(`${url}/healthz`);
  const runs = fetch(`${url}/v1/namespaces/main/runs`);
  const unknown = fetch(`${url}/nowhere`);
  const metrics = fetch(`${url}/metrics`);
  // With its report.
  expect(await leased(url)).toHaveLength(8);
  expect(await isAnswered(Promise.any([health, runs, unknown, metrics]))).toBe(false);
  load();
  expect(await (await health).json()).toEqual({ healthy: true });
  expect((await unknown).status).toBe(404);
  const { leases } = (await (await runs).json()) as { leases: readonly { progress: unknown }[] };
  expect(leases).toMatchObject([{ progress: { state: "closed" } }, { progress: { state: "closed" } }]);
  // Those that were granted before it counted are counted, too.
  expect(await (await metrics).text()).toMatch(/^callnumber_leases_total\{namespace="main"\} 2$/m);
});

test("the other routes are loaded when none is requested, too, after the importers that waited for the start", async () => {
  const { url, begunAtMs, load, output } = await servedWithoutFramework();
  await leased(url);
  await expect.poll(begunAtMs, { timeout: 10_000 }).toBeGreaterThan(0);
  load();
  const start = jsonLines(output().stdout).find(({ msg }) => msg === "start");
  expect((begunAtMs() as number) - Number(start?.time)).toBeGreaterThan(500);
});

test("requests that wait for their routes are checked as all others, and a client may have a bounded number of them", async () => {
  const { url, load } = await servedWithoutFramework();
  const get = (headers = {}) => fetch(`${url}/healthz`, { headers });
  expect((await get({ origin: "http://elsewhere.example" })).status).toBe(403);
  const responses = Array.from({ length: WAITING_MAX + 1 }, () => get());
  const rejected = await Promise.any(responses);
  expect([rejected.status, rejected.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(rejected.headers.get("x-content-type-options")).toBe("nosniff");
  expect(await rejected.json()).toMatchObject({ code: "overloaded" });
  load();
  const statuses = (await Promise.all(responses)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(WAITING_MAX);
});

test("serve that is stopped while it loads answers what it has taken, rejects what is new, and ends in order", async () => {
  const { url, load, output, stop } = await servedWithoutFramework();
  const taken = fetch(`${url}/v1/namespaces`);
  const stream = fetch(`${url}/v1/events`);
  await leased(url);
  const stopped = stop("SIGTERM");
  const lease = () => fetch(`${url}/v1/namespaces/main/leases`, { method: "POST" });
  await expect.poll(async () => (await (await lease()).json()) as unknown).toMatchObject({ code: "shutting_down" });
  load();
  expect((await taken).status).toBe(200);
  expect(await (await stream).text()).not.toContain("event:");
  expect(await stopped).toBe(0);
  expect(jsonLines(output().stdout).at(-1)).toMatchObject({ msg: "stop", reason: "SIGTERM" });
});

test("serve ends with an error when its other routes can't be loaded, and answers those who wait", async () => {
  const { url, load, output, child } = await servedWithoutFramework();
  const waiting = fetch(`${url}/healthz`);
  await leased(url);
  load("fastify is damaged");
  const response = await waiting;
  expect(response.status).toBe(500);
  expect(await response.json()).toMatchObject({ code: "internal_error" });
  await expect.poll(() => child.exitCode).toBe(1);
  expect(output().stderr).toContain("fastify is damaged");
});
