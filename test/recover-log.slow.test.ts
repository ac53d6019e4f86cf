/** `callnumber recover --scan` with logs: when the store and its witness are gone, they alone tell what was leased. */
import { randomUUID } from "node:crypto";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve, serveProcess, shell } from "./processes/command.js";
import { sharedRedis } from "./redis/test-redis.js";
import { replaceFile } from "./tls/files.js";

const LEASE_COUNT = 12;

function newRedisStore(): { url: string; lose: () => Promise<void> } {
  const url = sharedRedis().operatorUrl;
  const prefix = new URL(url).searchParams.get("prefix");
  return {
    url,
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
    const before = await serveProcess(url, "--witness-folder", join(folder, "lost-witness"));
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
    // What is to be typed again names no password.
    const storeFile = replaceFile(join(folder, "store-url"), `${url}\n`);
    const recover = ["recover", "--store-file", storeFile, "--witness-folder", join(folder, "new-witness")];
    const logs = ["--scan", older, "--scan", `log:${newer}`];

    const looked = await callnumber([...recover, ...logs]);
    expect(looked, looked.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(`Reading ${newer}`) });
    expect(looked.stdout).toContain(`store id ${storeId}`);
    expect(looked.stdout).toMatch(new RegExp(`greatest run ${Math.max(...leased)} \\(lease, line \\d+\\)`));
    expect(looked.stdout).toMatch(/1 line that can't be read was passed over/);
    const line = looked.stdout.split("\n").find((one) => one.startsWith("  callnumber recover ")) as string;
    expect(line).toContain(` --store-id ${storeId} --apply`);
    expect(line).toContain(`callnumber recover --store-file ${storeFile} --witness-folder`);
    const applied = await shell(line);
    expect(applied, applied.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("Done: ") });

    const after = await serve(url, "--witness-folder", join(folder, "new-witness"));
    for (let count = 0; count < 2; count++) {
      const again = await callnumber(["next", "--coordinator", after.url]);
      expect(again, again.stderr).toMatchObject({ code: 0 });
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

  async function newStore(): Promise<{ store: string; own: string; log: string }> {
    const folder = await folderForTest();
    const store = `sqlite:${join(folder, "store.db")}`;
    const made = await callnumber(["init", "--store", store, "--json"]);
    return { store, own: (JSON.parse(made.stdout) as { storeId: string }).storeId, log: join(folder, "log") };
  }

  test("are told and never taken for this one's", async () => {
    const { store, own, log } = await newStore();
    await writeFile(log, `${line(own, 5)}\n${line(id("a"), 900)}\n`);
    const looked = await callnumber(["recover", "--store", store, "--scan", log]);
    expect(looked).toMatchObject({ code: 0 });
    expect(looked.stdout).toMatch(/the log +greatest run 5 \(lease, line 1\), of 1 lease in /);
    expect(looked.stdout).toContain(`not taken: 1 lease up to run 900 of namespace main, store id ${id("a")}`);
    expect(looked.stdout).toContain("no run of this store above it was ever leased\n  data nodes");
    const asJson = JSON.parse((await callnumber(["recover", "--store", store, "--scan", log, "--json"])).stdout);
    expect(asJson).toMatchObject({ storeId: own, logs: [{ name: log, stores: [{}, { storeId: id("a") }] }] });
  });

  test.each([
    ["the only ones", () => []],
    ["above the mark that would be set", (own: string) => [line(own, 5)]],
  ])("end the recovery when they are %s, until the store id is typed", async (_, linesOf) => {
    const { store, own, log } = await newStore();
    await writeFile(log, [...linesOf(own), line(id("a"), 9_000_000)].join("\n"));
    const recover = ["recover", "--store", store, "--scan", log];
    const before = await callnumber(["recover", "--store", store, "--json"]);
    for (const more of [[], ["--apply"]]) {
      const refused = await callnumber([...recover, ...more]);
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("(store_replaced)") });
      expect(refused.stderr).toMatch(new RegExp(`tells of run 9000000 of namespace "main" in store id ${id("a")}, `));
      expect(refused.stderr).toContain(`--store-id ${own}\``);
      expect(refused.stdout).not.toMatch(/recovering sets|was ever leased|Done/);
    }
    const { found } = JSON.parse(before.stdout);
    expect(JSON.parse((await callnumber(["recover", "--store", store, "--json"])).stdout)).toMatchObject({ found });
    const typed = await callnumber([...recover, "--store-id", own, "--apply"]);
    expect(typed).toMatchObject({ code: 0, stdout: expect.stringContaining("Done: ") });
    expect(typed.stdout).toContain(`run 9,000,000 of store id ${id("a")} was, and can come again here`);
  });

  test("are not taken for those of a store that nothing else names, until its id is typed", async () => {
    const { store, log } = await newStore();
    const recover = ["recover", "--store", store, "--namespace", "lists", "--scan", log];
    await writeFile(log, line(id("a"), 5).replace("main", "lists"));
    const looked = await callnumber(recover);
    expect(looked).toMatchObject({ code: 0 });
    expect(looked.stdout.endsWith(`\n  ${["callnumber", ...recover].join(" ")} --store-id ${id("a")} --apply\n`)).toBe(
      true,
    );
    const refused = await callnumber([...recover, "--apply"]);
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("(operator_needed)") });
    expect(refused.stderr).toContain(`--store-id ${id("a")}\``);
    expect((await callnumber(recover)).stdout).toContain("none: the store holds no such namespace");
  });

  test("let nobody guess which store is recovered", async () => {
    const folder = await folderForTest();
    const { url } = newRedisStore();
    const log = join(folder, "log");
    await writeFile(log, `${line(id("a"), 5)}\n${line(id("b"), 6)}\n`);
    // What is to be typed again names no password.
    const storeFile = replaceFile(join(folder, "store-url"), `${url}\n`);
    const recover = ["recover", "--store-file", storeFile, "--witness-folder", join(folder, "witness"), "--scan", log];
    const refused = await callnumber(recover);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("the logs tell of several") });
    const told = await callnumber([...recover, "--store-id", id("a")]);
    expect(told).toMatchObject({ code: 0, stdout: expect.stringMatching(/the log +greatest run 5 /) });
  });

  test("and a log without a lease of the namespace is the wrong one", async () => {
    const { store, log } = await newStore();
    await writeFile(log, '{"coordinator":"vm","msg":"start"}\n');
    expect(await callnumber(["recover", "--store", store, "--scan", log])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('holds no lease of namespace "main"'),
    });
  });

  test("and a log that can't be read at all does not pass beside one that can", async () => {
    const { store, own, log } = await newStore();
    await writeFile(log, `${line(own, 5)}\n`);
    const strange = `${log}.strange`;
    await writeFile(strange, `${JSON.stringify({ message: line(own, 70) })}\n{"MESSAGE":null}\n`);
    const refused = await callnumber(["recover", "--store", store, "--scan", log, "--scan", strange, "--apply"]);
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("(archive_unreadable)") });
    expect(refused.stderr).toMatch(
      /log\.strange holds no event of a coordinator, and 2 lines that can't be read \(line 1: ".*" is no event\)/,
    );
  });
});

test("recover reports that a healthy store needs no recovery, and nothing of the kind for a copied one", async () => {
  const folder = await folderForTest();
  const path = join(folder, "store.db");
  const witness = ["--witness-folder", join(folder, "witness")];
  expect((await callnumber(["init", "--store", `sqlite:${path}`, ...witness])).code).toBe(0);
  const looked = await callnumber(["recover", "--store", `sqlite:${path}`, ...witness]);
  expect(looked).toMatchObject({ code: 0, stdout: expect.stringContaining("no recovery is needed") });
  await copyFile(path, `${path}.copy`);
  const copied = await callnumber(["recover", "--store", `sqlite:${path}.copy`, ...witness]);
  expect(copied).toMatchObject({ code: 0, stdout: expect.not.stringContaining("no recovery is needed") });
});
