import { readdirSync, readFileSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { clockShimUnavailable, createMovedClock } from "./moved-clock.js";
import { command, info } from "./redis-command.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "./test-redis.js";

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
/** The odd ones show that seconds are carried. */
const MOVES_MS = [HOUR_MS, -HOUR_MS, YEAR_MS, -YEAR_MS, 999, -999, 0];

describe("a clock that can be moved", () => {
  beforeEach((context) => {
    const reason = ownServerUnavailable() ?? clockShimUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("moves by an hour and by a year, back and forth, under a server that keeps answering", async () => {
    const clock = createMovedClock();
    const server = await startRedisServer({ preloads: [clock.preload], config: { appendonly: "yes" } });
    for (const offsetMs of MOVES_MS) {
      await clock.move(offsetMs, server);
      expect(hoursApart(await timeOf(server), offsetMs)).toBe(0);
      expect(hoursApart(await timeInScript(server), offsetMs)).toBe(0);
      await command(server, "INCR", "moves");
      const [, micros] = (await command(server, "TIME")) as [string, string];
      expect(Number(micros)).toBeGreaterThanOrEqual(0);
      expect(Number(micros)).toBeLessThan(1_000_000);
    }
    expect(await command(server, "GET", "moves")).toBe(`${MOVES_MS.length}`);
    expect((await info(server)).process_id).toBe(`${server.pid}`);
  });

  it("is one for all servers that live by it, also after a new start, and for no other server", async () => {
    const clock = createMovedClock();
    const first = await startRedisServer({ preloads: [clock.preload] });
    const second = await startRedisServer({ preloads: [clock.preload] });
    const stranger = await startRedisServer();
    await clock.move(-YEAR_MS, first, second);
    await first.kill("SIGKILL");
    await first.start();
    for (const server of [first, second]) expect(hoursApart(await timeOf(server), -YEAR_MS)).toBe(0);
    expect(hoursApart(await timeOf(stranger), 0)).toBe(0);
  });

  it("lets a key die when it leaps past its hour, as Redis's own clock would", async () => {
    const clock = createMovedClock();
    const server = await startRedisServer({ preloads: [clock.preload] });
    await command(server, "SET", "mark", 1, "PX", YEAR_MS / 2);
    await clock.move(YEAR_MS, server);
    expect(await command(server, "GET", "mark")).toBeNull();
  });

  it("leaves no thread of the server that waits by the moved clock: a year back would keep it awake for ever", async () => {
    const { pid } = await startRedisServer({ preloads: [createMovedClock().preload] });
    const threads = readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/comm`, "utf8"));
    expect(threads.map((name) => name.trim())).not.toContain("jemalloc_bg_thd");
  });
});

/** Whole hours between a time and what the moved clock should show. */
function hoursApart(timeMs: number, offsetMs: number): number {
  return Math.abs(Math.round((timeMs - Date.now() - offsetMs) / HOUR_MS));
}

async function timeOf(server: RedisServer): Promise<number> {
  const [seconds] = (await command(server, "TIME")) as [string];
  return Number(seconds) * 1_000;
}

async function timeInScript(server: RedisServer): Promise<number> {
  return Number(await command(server, "EVAL", "return redis.call('TIME')[1]", 0)) * 1_000;
}
