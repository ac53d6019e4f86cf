/**
 * A start with a clock that is years ahead, and a last write in the future: with processes and a Redis whose clock is set, and the way out as
 * it is printed.
 * Guarantees: G6 (docs/guarantees.md).
 */
import { join } from "node:path";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import type { StatusResponse } from "@callnumber/protocol/schemas";
import { expect, test } from "vitest";
import { callnumber, type Finished, folderForTest, serveProcessWith } from "./processes/command.js";
import { controlledMachineUnavailable, newControlledMachine } from "./redis/controlled-machine.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "./redis/test-redis.js";

const DAY_MS = 24 * 3_600_000;

interface World {
  readonly url: string;
  /** The URL of another store of the kind, which does not exist yet. */
  readonly otherUrl: string;
  readonly server?: RedisServer;
}

const machine = controlledMachineUnavailable() === undefined ? newControlledMachine() : undefined;
const WORLDS = { SQLite: onSqlite, Redis: onRedis } as const;
let checkpointDir: string;

test.for(Object.entries(WORLDS))("a start of %s ten years ahead changes nothing", async ([name, worldOf], { skip }) => {
  const reason = unavailable(name);
  if (reason !== undefined) return skip(reason);
  const world = await worldOf();
  await during(world, 0, async (url) => {
    expect(await runOf(url)).toBe("0/1");
  });
  await during(world, 3_360 * DAY_MS, async (url) => {
    await expect.poll(async () => (await statusOf(url)).guard.code).toBe("manual_recovery_required");
    const refused = await next(url);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toMatch(/30 days.*--confirm-clock/s);
    expect((await statusOf(url)).highWaterMark).toBe(1);
  });
  await during(world, 0, async (url) => {
    expect(await runOf(url)).toMatch(/^0\/(2|65\d{3}|66\d{3})$/);
  });
});

test.for(Object.entries(WORLDS))(
  "a last write of %s in the future is shown, and the printed command leads on",
  async ([name, worldOf], { skip }) => {
    const reason = unavailable(name);
    if (reason !== undefined) return skip(reason);
    const world = await worldOf();
    await during(world, 20 * DAY_MS, async (url) => {
      expect(await runOf(url)).toMatch(/^0\//);
    });
    let command = "";
    await during(world, 0, async (url) => {
      await expect.poll(async () => (await statusOf(url)).guard.code).toBe("clock_moved_backward");
      const { stdout } = await callnumber(["status", "--coordinator", url]);
      expect(stdout).toMatch(/alarms +.*clock_moved_backward/);
      [, command = ""] = /`(callnumber move [^`]*)`/.exec(stdout.replaceAll(/\s+/g, " ")) ?? [];
      const health = await callnumber(["doctor", "--coordinator", url]);
      expect(health).toMatchObject({ code: 1 });
      expect(health.stdout).toContain("clock_moved_backward");
    });
    const health = await callnumber(["doctor", "--store", world.url, "--checkpoint-dir", checkpointDir]);
    expect(health).toMatchObject({ code: 1 });
    expect(health.stdout).toMatch(/clock_moved_backward.*(19|20) days in the future/s);
    expect(command).toContain(world.url);
    const words = command.replace("NEW_STORE_URL", world.otherUrl).split(" ").slice(1);
    expect(await callnumber(words)).toMatchObject({ code: 0 });
    expect(await callnumber([...words, "--apply"])).toMatchObject({ code: 0 });
    await during({ ...world, url: world.otherUrl }, 0, async (url) => {
      expect(await runOf(url)).toMatch(/^1\//);
    });
  },
);

function unavailable(name: string): string | undefined {
  return controlledMachineUnavailable() ?? (name === "Redis" ? ownServerUnavailable() : undefined);
}

/** Serves the store by a clock that is ahead, and stops. */
async function during({ url, server }: World, aheadMs: number, act: (url: string) => Promise<void>): Promise<void> {
  if (machine === undefined) throw new Error("broken invariant: the test is skipped without a machine");
  await machine.clock.move(aheadMs, ...(server === undefined ? [] : [server]));
  const env = { ...machine.preload.environment, LD_PRELOAD: machine.preload.library };
  const create = server === undefined ? ["--create"] : [];
  const serving = await serveProcessWith({ env }, url, "--checkpoint-dir", checkpointDir, ...create);
  await act(serving.url);
  expect(await serving.stop()).toBe(0);
}

async function onSqlite(): Promise<World> {
  const folder = await folderForTest();
  checkpointDir = join(folder, "checkpoints");
  const [url, otherUrl] = ["one", "other"].map((name) => `sqlite:${join(folder, name, "store.db")}`) as [
    string,
    string,
  ];
  return { url, otherUrl };
}

async function onRedis(): Promise<World> {
  checkpointDir = join(await folderForTest(), "checkpoints");
  await machine?.clock.move(0);
  const server = await startRedisServer({
    config: { appendonly: "yes", appendfsync: "always", "aof-load-truncated": "no", "maxmemory-policy": "noeviction" },
    preload: machine?.preload,
    openBecause: "a printed command has no password",
  });
  const url = `redis://127.0.0.1:${server.port}/0`;
  expect(await callnumber(["init", "--store", url])).toMatchObject({ code: 0 });
  return { url, otherUrl: `redis://127.0.0.1:${server.port}/1`, server };
}

async function next(url: string): Promise<Finished> {
  return await callnumber(["next", "--coordinator", url]);
}

/** Takes a number, as soon as one is leased: a recovery of a busy machine takes longer than `next` waits. Returns its run, with its version. */
async function runOf(url: string): Promise<string> {
  let stdout = "";
  await expect
    .poll(async () => {
      const made = await next(url);
      ({ stdout } = made);
      return made.code === 0 ? "" : made.stderr;
    })
    .toBe("");
  const { version, run } = decodeCallNumber(stdout.trim());
  return `${version}/${run}`;
}

async function statusOf(url: string): Promise<StatusResponse> {
  const { stdout } = await callnumber(["status", "--json", "--coordinator", url]);
  return JSON.parse(stdout) as StatusResponse;
}
