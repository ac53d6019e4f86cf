/** `callnumber move`, run as an operator does: between real stores, with real coordinators before and after. */
import { cp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ledgerIdOf } from "@callnumber/protocol/api";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve } from "../../../test/processes/command.js";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, sharedRedis, startRedisServer } from "../../../test/redis/test-redis.js";
import { done, embeddedStore, expectFailure, imported, jsonOf } from "./commands-for-test.js";

const redisPlace = () => sharedRedis().operatorUrl;

/** Generates call numbers with so many importers. Returns the ledger ids of their runs. */
async function runsBy(url: string, count: number): Promise<readonly number[]> {
  const runs: number[] = [];
  for (let importer = 0; importer < count; importer++) {
    const { version, run } = decodeCallNumber((await imported(url))[0] as string);
    runs.push(ledgerIdOf(version, run));
  }
  return runs;
}

const ledgerAt = (url: string) => jsonOf<readonly object[]>("runs", "--coordinator", url);

test("move plans, moves with --apply, and ends leasing from the old store", async () => {
  const [from, to] = [await embeddedStore(), redisPlace()];
  await done("init", "--store", from);
  const old = await serve(from);
  await runsBy(old.url, 3);
  await old.stop();

  const look = await done("move", "--store", from, "--to", to);
  expect(look.stdout).toMatch(
    /version 0, high-water mark 3, written.*no such namespace.*not begun.*seals the old store.*3 of 3 leases.*version 1 of the call numbers.*6 more moves.*Nothing was changed/s,
  );
  const moved = await done("move", "--store", from, "--to", to, "--apply");
  expect(moved.stdout).toMatch(
    /Namespace main is moved: 3 leases.*new store id +\S+\.1073741825\..*stop every "callnumber serve".*start "callnumber serve".*expectedStoreId/s,
  );

  const stopped = await serve(from);
  const { stderr } = stopped.output();
  expect(stderr).toMatch(/Nothing is leased here \(namespace_moved\): .*was moved to .*listening on/s);
  expect(stderr).not.toContain("namespaces:");
  await expectFailure(["next", "--coordinator", stopped.url], 1, /was moved to .*namespace_moved/s);
  await stopped.stop();
  const again = await done("move", "--store", from, "--to", to, "--apply");
  expect(again.stdout).toContain("Namespace main was moved before.");
});

describe("move", () => {
  test("move --namespace all moves each namespace, and prints the result as JSON without a secret", async () => {
    const [from, to] = [await embeddedStore(), redisPlace()];
    await done("init", "--store", from);
    await done("init", "--store", from, "--namespace", "lists", "--first-run", "500");
    const move = ["move", "--store", from, "--to", to, "--namespace", "all"];
    const look = await jsonOf(...move);
    expect(look).toMatchObject({
      findings: [],
      namespaces: [
        { namespace: "lists", stage: "new", highWaterMark: 499, leaseCount: 0, newStoreId: null, targetPhase: null },
        { namespace: "main", stage: "new", highWaterMark: 0 },
      ],
    });
    const moved = await jsonOf(...move, "--apply");
    expect(moved).toMatchObject({
      moved: [
        { namespace: "lists", wasDone: false, version: 1 },
        { namespace: "main", wasDone: false, version: 1 },
      ],
    });
    expect(JSON.stringify([look, moved])).not.toMatch(/[0-9a-f]{64}/);
    expect(await jsonOf(...move)).toMatchObject({ namespaces: [{ targetPhase: 1 }, { targetPhase: 1 }] });
  });

  test("move --namespace all leaves no lost namespace behind", async () => {
    const [from, to] = [await embeddedStore(), redisPlace()];
    for (const namespace of ["lists", "main"]) await done("init", "--store", from, "--namespace", namespace);
    await (await serve(from)).stop();
    const database = new DatabaseSync(from.slice("sqlite:".length));
    database.exec("DELETE FROM namespaces WHERE name = 'lists'");
    database.close();
    const move = ["move", "--store", from, "--to", to, "--apply"];
    const lost = /namespace "lists" is missing, .* recover --store \S+ --namespace lists .*namespace_lost/s;
    await expectFailure([...move, "--namespace", "all"], 1, lost);
    await done(...move);
    await expectFailure([...move, "--namespace", "all"], 1, lost);
  });

  test("move --namespace all --json shows the namespaces that are moved when a later one fails", async () => {
    const [from, to] = [await embeddedStore(), redisPlace()];
    for (const namespace of ["lists", "main"]) await done("init", "--store", from, "--namespace", namespace);
    const database = new DatabaseSync(from.slice("sqlite:".length));
    database.exec(`CREATE TRIGGER failing BEFORE UPDATE ON namespaces WHEN NEW.name = 'main'
                   BEGIN SELECT RAISE(ABORT, 'the disk fails'); END`);
    database.close();
    const move = ["move", "--store", from, "--to", to, "--namespace", "all", "--apply", "--json"];
    const { code, stdout, stderr } = await callnumber(move);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("the disk fails") });
    expect(JSON.parse(stdout)).toMatchObject({ moved: [{ namespace: "lists", wasDone: false }] });
  });

  test("move makes a new file only with --apply, which continues above the old runs, with their ledger", async () => {
    const [from, folder] = [await embeddedStore(), await folderForTest()];
    const to = `sqlite:${join(folder, "with a space.db")}`;
    await done("init", "--store", from);
    const old = await serve(from);
    const [before = Infinity] = await runsBy(old.url, 1);
    const ledger = await ledgerAt(old.url);
    await old.stop();
    await done("move", "--store", from, "--to", to);
    expect(await readdir(folder)).toEqual([]);
    await done("move", "--store", from, "--to", to, "--apply");
    const { url } = await serve(to);
    const [after = 0] = await runsBy(url, 1);
    expect(before).toBeLessThan(2 ** 30);
    expect(after).toBeGreaterThan(2 ** 30);
    expect((await ledgerAt(url)).slice(1)).toEqual(ledger);
  });

  test("move prints of a source that forgot its seal, or is sealed for another place, that it is so", async () => {
    const [from, to, other] = [await embeddedStore(), await embeddedStore(), redisPlace()];
    const path = from.slice("sqlite:".length);
    await done("init", "--store", from);
    await cp(path, `${path}.before`);
    const moved = await jsonOf<{ moved: { storeId: string }[] }>("move", "--store", from, "--to", to, "--apply");
    const again = ["move", "--store", from, "--to", to];
    const nothing = (await done(...again)).stdout;
    expect(nothing).toMatch(/done already: nothing is left to do\nNothing was changed\n$/);
    const lost = ["--confirm-loss", moved.moved[0]?.storeId ?? ""];
    expect((await done("move", "--store", from, "--to", other, ...lost)).stdout).toMatch(
      /begun: the old store is sealed for another place, and .*Nothing was changed\. To do it, .*--apply/s,
    );
    await cp(`${path}.before`, path);
    expect((await done(...again)).stdout).toMatch(
      /done already, but the old store has no seal; --apply seals it for this one\n.*To do it, .*--apply/,
    );
    await rm(to.slice("sqlite:".length));
    expect((await done(...again, ...lost)).stdout).toMatch(
      /begun: the old store has no seal, and the new one is missing/,
    );
    expect((await done("move", "--store", from, "--to", other, ...lost, "--apply")).stdout).toContain(
      `and every one that ran on the store ${lost[1]}, which is given up`,
    );
  });

  test("move prints for a new place that holds a copy the command for that place, not for the old store", async () => {
    const [from, original, to] = [await embeddedStore(), await embeddedStore(), await embeddedStore()];
    await done("init", "--store", from);
    await done("init", "--store", original);
    await cp(original.slice("sqlite:".length), to.slice("sqlite:".length));
    const { stderr } = await expectFailure(["move", "--store", from, "--to", to], 1, /store_copied/);
    expect(stderr).toContain(`callnumber recover --store ${to} `);
    expect(stderr).not.toContain(from);
  });

  test("move prints of a new store that was moved on where it went, and not to serve it", async () => {
    const [from, to, last] = [await embeddedStore(), await embeddedStore(), await embeddedStore()];
    await done("init", "--store", from);
    const late = ["move", "--store", from, "--to", to];
    await done(...late, "--apply");
    await done("move", "--store", to, "--to", last, "--apply");
    const movedOn = `moved on           to ${last}, as store id `;
    expect((await done(...late)).stdout).toContain(movedOn);
    const { stdout } = await done(...late, "--apply");
    expect(stdout).toContain(movedOn);
    expect(stdout).not.toContain(`"callnumber serve" on ${to}`);
  });

  test("move fails to a third place after a move, and to a place that holds another store", async () => {
    const [from, to, other] = [redisPlace(), redisPlace(), redisPlace()];
    await done("init", "--store", from);
    await done("init", "--store", other);
    const moveTo = (place: string) => ["move", "--store", from, "--to", place, "--apply"];
    await expectFailure(
      moveTo(other),
      1,
      /it holds store .*another file, "\?prefix=" or "\?schema=".*namespace_exists/s,
    );
    await done(...moveTo(to));
    const { stderr } = await expectFailure(moveTo(redisPlace()), 1, "namespace_moved");
    expect(stderr).toContain(new URL(to).searchParams.get("prefix"));
  });

  test("move prints and exits for a target that would lease nothing as --apply does, and changes nothing", async ({
    skip,
  }) => {
    const reason = ownServerUnavailable();
    if (reason !== undefined) skip(reason);
    const { url } = await startRedisServer({ config: { maxmemory: "1gb", "maxmemory-policy": "allkeys-lru" } });
    const from = await embeddedStore();
    await done("init", "--store", from);
    const words = ["move", "--store", from, "--to", asOperator(url)];
    const look = await callnumber(words);
    expect(look).toMatchObject({ code: 1, stdout: expect.stringMatching(/the move +not begun/) });
    expect(look.stdout).not.toContain("--apply");
    const { stderr } = await expectFailure([...words, "--apply"], 1, /would lease nothing.*store_eviction_enabled/s);
    expect(look.stderr).toBe(stderr);
  });

  test("move of an embedded store fails while a coordinator serves it", async () => {
    const from = await embeddedStore();
    await serve(from, "--create");
    await expectFailure(["move", "--store", from, "--to", redisPlace(), "--apply"], 1, /Stop it first.*store_locked/s);
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
  ])("move %j exits with %i and prints what is wrong, and no password", async (words, code, message) => {
    const { stderr } = await expectFailure(["move", ...words], code, message);
    expect(stderr).not.toContain("geheim");
  });
});
