/** A store that is gone while the checkpoint directory remembers it: every command gives one answer, changes nothing, and prints what helps. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { removeWithMarkers } from "../../../test/markers-of-stores.js";
import { callnumber, type Finished, folderForTest, serve, shell } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";

let folder: string;
let checkpointDir: string;

beforeEach(async () => {
  folder = await folderForTest();
  checkpointDir = join(folder, "checkpoint");
});

/** Makes a store, leases from it, and stops. */
async function used(store: string): Promise<void> {
  await callnumber(["init", "--store", store, "--checkpoint-dir", checkpointDir]);
  const { url, stop } = await serve(store, "--checkpoint-dir", checkpointDir);
  expect((await callnumber(["next", "--coordinator", url])).code).toBe(0);
  await stop();
}

/** One after the other: only one process may look at an embedded store. */
async function answersOf(store: string, commands: readonly (readonly string[])[]): Promise<readonly Finished[]> {
  const answers: Finished[] = [];
  for (const command of commands) {
    answers.push(await callnumber([...command, "--store", store, "--checkpoint-dir", checkpointDir]));
  }
  return answers;
}

describe("an embedded store that is gone", () => {
  let data: string;
  let store: string;

  beforeEach(async () => {
    data = join(folder, "da ta");
    store = `sqlite:${data}/store.db`;
    await used(store);
    await removeWithMarkers(data);
  });

  test.each([
    ["missing", async () => {}],
    [
      "an empty file",
      async () => {
        await mkdir(data);
        await writeFile(`${data}/store.db`, "", { mode: 0o600 });
      },
    ],
  ])("is reported by every command with the same words when it is %s, and nothing is made", async (_, leave) => {
    await leave();
    const before = await readdir(folder, { recursive: true });
    const commands = [
      ["serve", "--port", "0"],
      ["serve", "--port", "0", "--create"],
      ["doctor"],
      ["init"],
      ["init", "--namespace", "lists"],
      ["advance-version"],
      ["move", "--to", `sqlite:${folder}/new.db`],
    ];
    const errors = (await answersOf(store, commands)).map(({ stderr }) => /^callnumber: (.*)$/m.exec(stderr)?.[1]);
    expect(new Set(errors).size).toBe(1);
    expect(errors[0]).toMatch(
      /run 1 of namespace "main" was leased from it.*callnumber recover --store 'sqlite:\S+ ta\/store.db' .*` \(store_not_found\)$/,
    );
    const after = await readdir(folder, { recursive: true });
    expect(after.filter((name) => !name.endsWith(".lock"))).toEqual(before);
  });

  test("leases again, above all that was leased, after the printed command", async () => {
    const [{ stderr }] = (await answersOf(store, [["serve", "--port", "0"]])) as [Finished];
    const printed = /`(callnumber recover [^`]+)` \(store_not_found\)/.exec(stderr)?.[1];
    const planned = await shell(`${printed}`);
    expect(planned).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing was changed.") });
    expect(await readdir(folder)).toEqual(["checkpoint"]);
    expect((await shell(`${printed} --apply`)).code).toBe(0);
    const { url } = await serve(store, "--checkpoint-dir", checkpointDir);
    const made = await callnumber(["next", "--coordinator", url]);
    const [, run] = (await callnumber(["decode", made.stdout.trim()])).stdout.split(",");
    expect(Number(run)).toBeGreaterThan(65_536);
  });

  test("is not made by a recovery that can't be carried out", async () => {
    const recover = ["recover", "--apply", "--min-run", "1000000000"];
    const [refused] = (await answersOf(store, [recover])) as [Finished];
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("manual_recovery_required") });
    expect(await readdir(folder)).toEqual(["checkpoint"]);
  });
});

test("a start that can't remember makes no store", async () => {
  await writeFile(checkpointDir, "no directory");
  const [started] = (await answersOf(`sqlite:${folder}/store.db`, [["serve", "--port", "0", "--create"]])) as [
    Finished,
  ];
  expect(started).toMatchObject({ code: 1, stderr: expect.stringContaining("checkpoint_unavailable") });
  expect(await readdir(folder)).toEqual(["checkpoint"]);
});

test("a checkpoint directory that is the store's own is refused before a store is made", async () => {
  const store = `sqlite:${checkpointDir}/store.db`;
  const [started] = (await answersOf(store, [["serve", "--port", "0", "--create"]])) as [Finished];
  expect(started).toMatchObject({ code: 2, stderr: expect.stringContaining("the store's own folder") });
  expect(await readdir(folder)).toEqual([]);
});

describe("a Redis that was emptied", () => {
  test("is reported as emptied by serve, doctor and init, and not as new", async () => {
    const { operatorUrl, url } = sharedRedis();
    await used(operatorUrl);
    const redis = new Redis(url);
    await redis.del(...(await redis.keys(`${new URL(operatorUrl).searchParams.get("prefix")}*`)));
    const commands = [["serve", "--port", "0"], ["serve", "--port", "0", "--namespace", "main"], ["doctor"], ["init"]];
    for (const { code, stdout, stderr } of await answersOf(operatorUrl, commands)) {
      expect(code).toBe(1);
      expect(stdout + stderr).toContain('namespace "main" is missing, but run 1 was leased from it');
      expect(stdout + stderr).toContain("namespace_lost");
      expect(stdout + stderr).not.toContain("callnumber init");
    }
    expect(await redis.keys(`${new URL(operatorUrl).searchParams.get("prefix")}*`)).toEqual([]);
    redis.disconnect();
  });

  test("is not made by --create, which is for an embedded store", async () => {
    const [started] = (await answersOf(sharedRedis().storeUrl, [["serve", "--create", "--port", "0"]])) as [Finished];
    expect(started).toMatchObject({ code: 2, stderr: expect.stringContaining("For Redis: `callnumber init --store ") });
  });
});
