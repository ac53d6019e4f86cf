/** `callnumber recover --scan` with logs: when the store and its witness are gone, they alone tell what was leased. */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve } from "./processes/command.js";
import { sharedRedis } from "./redis/test-redis.js";

const LEASE_COUNT = 12;

function newRedisStore(): { url: string; lose: () => Promise<void> } {
  const prefix = `test-${randomUUID()}:`;
  const url = new URL(sharedRedis().url);
  url.searchParams.set("prefix", prefix);
  return {
    url: url.href,
    async lose() {
      const redis = new Redis(sharedRedis().url);
      const keys = await redis.keys(`${prefix}*`);
      expect(keys.length).toBeGreaterThan(0);
      await redis.del(...keys);
      redis.disconnect();
    },
  };
}

async function leaseRuns(coordinator: string): Promise<{ firstRun: number; runCount: number; storeId: string }> {
  const answer = await fetch(`${coordinator}/v1/namespaces/main/leases`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      runCount: 3,
      nonce: randomUUID(),
      holder: { name: "importer", host: "mail-1", pid: 1, labels: {} },
      lastRun: null,
      receipt: null,
      sentAtMs: Date.now(),
    }),
  });
  expect(answer.status).toBe(201);
  return (await answer.json()) as { firstRun: number; runCount: number; storeId: string };
}

describe("with nothing left but the logs", () => {
  test("the store goes on above everything that they tell of, and nothing is leased twice", async () => {
    const folder = await folderForTest();
    const { url, lose } = newRedisStore();
    expect((await callnumber(["init", "--store", url])).code).toBe(0);
    const before = await serve(url, "--witness-folder", join(folder, "lost-witness"));
    const leased = new Set<number>();
    let storeId = "";
    for (let count = 0; count < LEASE_COUNT; count++) {
      const lease = await leaseRuns(before.url);
      storeId = lease.storeId;
      for (let run = lease.firstRun; run < lease.firstRun + lease.runCount; run++) leased.add(run);
    }
    // Each line was written before its lease was answered.
    await before.stop("SIGKILL");
    expect(leased.size).toBe(LEASE_COUNT * 3);
    await lose();

    // Rotated in the middle of a line, and the older half compressed.
    const log = before.output().stdout;
    const half = Math.floor(log.length / 2);
    const [older, newer] = [join(folder, "log.1.gz"), join(folder, "log")];
    await writeFile(older, gzipSync(log.slice(0, half)));
    await writeFile(newer, log.slice(half));
    const recover = ["recover", "--store", url, "--witness-folder", join(folder, "new-witness")];
    const logs = ["--scan", older, "--scan", `log:${newer}`];

    const looked = await callnumber([...recover, ...logs]);
    expect(looked).toMatchObject({ code: 0, stderr: expect.stringContaining(`Reading ${newer}`) });
    expect(looked.stdout).toContain(`store id ${storeId}`);
    expect(looked.stdout).toMatch(new RegExp(`greatest run ${Math.max(...leased)} \\(lease, line \\d+\\)`));
    expect(looked.stdout).toMatch(/1 line that can't be read was passed over/);
    expect((await callnumber([...recover, ...logs, "--apply"])).code).toBe(0);

    const after = await serve(url, "--witness-folder", join(folder, "new-witness"));
    for (let count = 0; count < 2; count++) {
      const again = await callnumber(["next", "--coordinator", after.url]);
      expect(again).toMatchObject({ code: 0 });
      const [, run] = (await callnumber(["decode", again.stdout.trim()])).stdout.split(",");
      expect(leased.has(Number(run))).toBe(false);
      expect(Number(run)).toBeGreaterThan(Math.max(...leased));
    }
  });
});

describe("lines of another store", () => {
  const line = (storeId: string, firstRun: number) =>
    JSON.stringify({ namespace: "main", storeId, version: 0, firstRun, runCount: 1, msg: "lease" });
  const id = (name: string) => `${name.repeat(8)}-0000-4000-8000-000000000000.1.1793491200000.2`;

  test("are told and never taken for this one's", async () => {
    const folder = await folderForTest();
    const store = `sqlite:${join(folder, "store.db")}`;
    const made = await callnumber(["init", "--store", store, "--json"]);
    const own = (JSON.parse(made.stdout) as { storeId: string }).storeId;
    const log = join(folder, "log");
    await writeFile(log, `${line(own, 5)}\n${line(id("a"), 900_000_000)}\n`);
    const looked = await callnumber(["recover", "--store", store, "--scan", log]);
    expect(looked).toMatchObject({ code: 0 });
    expect(looked.stdout).toMatch(/the log +greatest run 5 \(lease, line 1\), of 1 lease in /);
    expect(looked.stdout).toContain(`not taken: 1 lease up to run 900,000,000 of namespace main, store id ${id("a")}`);
    const asJson = JSON.parse((await callnumber(["recover", "--store", store, "--scan", log, "--json"])).stdout);
    expect(asJson).toMatchObject({ storeId: own, logs: [{ name: log, stores: [{}, { storeId: id("a") }] }] });
  });

  test("let nobody guess which store is recovered", async () => {
    const folder = await folderForTest();
    const { url } = newRedisStore();
    const log = join(folder, "log");
    await writeFile(log, `${line(id("a"), 5)}\n${line(id("b"), 6)}\n`);
    const recover = ["recover", "--store", url, "--witness-folder", join(folder, "witness"), "--scan", log];
    const refused = await callnumber(recover);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("the logs tell of several") });
    const told = await callnumber([...recover, "--store-id", id("a")]);
    expect(told).toMatchObject({ code: 0, stdout: expect.stringMatching(/the log +greatest run 5 /) });
  });

  test("and a log without a lease of the namespace is the wrong one", async () => {
    const folder = await folderForTest();
    const store = `sqlite:${join(folder, "store.db")}`;
    await callnumber(["init", "--store", store]);
    const log = join(folder, "log");
    await writeFile(log, '{"msg":"start"}\n');
    expect(await callnumber(["recover", "--store", store, "--scan", log])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('holds no lease of namespace "main"'),
    });
  });
});
