/** `callnumber move`, typed as an operator does: between real stores, with real coordinators before and after. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callnumber, type Finished, folderForTest, serve } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";

interface Places {
  readonly from: string;
  readonly to: string;
}

const redisPlace = () => sharedRedis().operatorUrl;
const embeddedPlace = async () => `sqlite:${join(await folderForTest(), "store.db")}`;

const PAIRS: readonly [name: string, places: () => Promise<Places>][] = [
  ["from the embedded store to Redis", async () => ({ from: await embeddedPlace(), to: redisPlace() })],
  ["from Redis to Redis", async () => ({ from: redisPlace(), to: redisPlace() })],
];

async function done(...parameters: readonly string[]): Promise<Finished> {
  const finished = await callnumber(parameters);
  expect(finished, parameters.join(" ")).toMatchObject({ code: 0 });
  return finished;
}

/** Makes call numbers by importers of its own; returns the ledger ids of their runs. */
async function runsBy(url: string, count: number, namespace = "main"): Promise<readonly number[]> {
  const runs: number[] = [];
  for (let importer = 0; importer < count; importer++) {
    const stdout = await nextFrom(url, namespace);
    const { stdout: fields } = await done("decode", stdout.trim());
    const [version, run] = fields.split(",").map(Number) as [number, number];
    runs.push(version * 2 ** 30 + run);
  }
  return runs;
}

/** Asks again where `next` gave up after its ten seconds: on a busy machine a store that has moved here is claimed later than that. */
async function nextFrom(url: string, namespace: string): Promise<string> {
  for (;;) {
    const { code, stdout, stderr } = await callnumber(["next", "--coordinator", url, "--namespace", namespace]);
    if (code === 0) return stdout;
    expect(stderr).toMatch(/claimed|conflict|run_ceiling_reached|wait_timeout/);
  }
}

async function ledgerAt(url: string): Promise<readonly { firstRun: number; progress: unknown; holder: unknown }[]> {
  const { stdout } = await done("runs", "--json", "--coordinator", url);
  return JSON.parse(stdout) as { firstRun: number; progress: unknown; holder: unknown }[];
}

describe.each(PAIRS)("move %s", (_, places) => {
  test("looks first, moves with --apply, and the new coordinator goes on above the old one's runs, with its ledger", async () => {
    const { from, to } = await places();
    await done("init", "--store", from);
    const old = await serve(from);
    const before = await runsBy(old.url, 3);
    const ledger = await ledgerAt(old.url);
    await old.stop();

    const look = await done("move", "--store", from, "--to", to);
    expect(look.stdout).toMatch(
      /version 0, mark 3,.*no such namespace.*not begun.*seals the old store.*3 of 3 leases.*version 1 of the call numbers.*6 more moves.*Nothing was changed/s,
    );
    const moved = await done("move", "--store", from, "--to", to, "--apply");
    expect(moved.stdout).toMatch(
      /Namespace main is moved: 3 leases.*new store id +\S+\.1073741825\..*stop every "callnumber serve".*start "callnumber serve".*expectedStoreId/s,
    );

    const stopped = await serve(from);
    expect(await callnumber(["next", "--coordinator", stopped.url])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/was moved to .*namespace_moved/s),
    });
    await stopped.stop();

    const current = await serve(to);
    const after = await runsBy(current.url, 2);
    expect(Math.min(...after)).toBeGreaterThan(2 ** 30);
    expect(Math.max(...before)).toBeLessThan(2 ** 30);
    expect(new Set(after).size).toBe(2);
    expect((await ledgerAt(current.url)).slice(2)).toEqual(ledger);
    const again = await done("move", "--store", from, "--to", to, "--apply");
    expect(again.stdout).toContain("Namespace main was moved before.");
  });
});

describe("move", () => {
  test("of all namespaces takes each, and tells programs what came of it, without a secret", async () => {
    const [from, to] = [await embeddedPlace(), redisPlace()];
    await done("init", "--store", from);
    await done("init", "--store", from, "--namespace", "lists", "--first-run", "500");
    const parameters = ["--store", from, "--to", to, "--namespace", "all", "--json"];
    const look = await done("move", ...parameters);
    expect(JSON.parse(look.stdout)).toMatchObject({
      findings: [],
      namespaces: [
        { namespace: "lists", stage: "new", highWaterMark: 499, leaseCount: 0, newStoreId: null, targetPhase: null },
        { namespace: "main", stage: "new", highWaterMark: 0 },
      ],
    });
    const moved = await done("move", ...parameters, "--apply");
    expect(JSON.parse(moved.stdout)).toMatchObject({
      moved: [
        { namespace: "lists", wasDone: false, version: 1 },
        { namespace: "main", wasDone: false, version: 1 },
      ],
    });
    expect(look.stdout + moved.stdout).not.toMatch(/[0-9a-f]{64}/);
    const after = JSON.parse((await done("move", ...parameters)).stdout) as { namespaces: { targetPhase: number }[] };
    expect(after.namespaces.map(({ targetPhase }) => targetPhase)).toEqual([1, 1]);
  });

  test("to a file makes it, but only to move there", async () => {
    const [from, folder] = [await embeddedPlace(), await folderForTest()];
    const to = `sqlite:${join(folder, "with a space.db")}`;
    await done("init", "--store", from);
    await done("move", "--store", from, "--to", to);
    expect(await readdir(folder)).toEqual([]);
    await done("move", "--store", from, "--to", to, "--apply");
    const { url } = await serve(to);
    expect(await runsBy(url, 1)).toHaveLength(1);
  });

  test("is refused to a third place once it was made, and to a place that keeps another store", async () => {
    const [from, to, other] = [redisPlace(), redisPlace(), redisPlace()];
    await done("init", "--store", from);
    await done("init", "--store", other);
    expect(await callnumber(["move", "--store", from, "--to", other, "--apply"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/it holds store .*another file or "\?prefix=".*namespace_exists/s),
    });
    await done("move", "--store", from, "--to", to, "--apply");
    const refused = await callnumber(["move", "--store", from, "--to", redisPlace(), "--apply"]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("namespace_moved") });
    expect(refused.stderr).toContain(new URL(to).searchParams.get("prefix"));
  });

  test("of an embedded store that is served is refused: the coordinator is to be stopped first", async () => {
    const from = await embeddedPlace();
    await serve(from, "--create");
    expect(await callnumber(["move", "--store", from, "--to", redisPlace(), "--apply"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Stop it first.*store_locked/s),
    });
  });

  test.each<[string[], number, RegExp]>([
    [["--store", "memory:", "--to", "redis://127.0.0.1:1"], 2, /memory store ends with its process/],
    [["--store", "redis://127.0.0.1:1", "--to", "redis://127.0.0.1:1/0"], 2, /the same place/],
    [["--store", "redis://u:geheim@127.0.0.1:1", "--to", "redis://v:geheim@127.0.0.1:1"], 2, /the same place/],
    [
      ["--store", "redis://u:geheim@127.0.0.1:1", "--to", "redis://v:geheim@127.0.0.1:2"],
      1,
      /127\.0\.0\.1:1 can't be reached/,
    ],
    [["--store", "redis://127.0.0.1:1"], 2, /--to/],
    [["--to", "redis://127.0.0.1:1", "--nodes", "0"], 2, /--nodes.*from 1/s],
    [["--to", "redis://127.0.0.1:1", "--store", "sqlite:/nonexistent/x.db"], 1, /store_not_found/],
  ])("%j exits with %i and says what is wrong, and no password", async (parameters, code, said) => {
    const finished = await callnumber(["move", ...parameters]);
    expect(finished).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(said) });
    expect(finished.stderr).not.toContain("geheim");
  });
});
