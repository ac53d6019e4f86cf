/**
 * A wall clock for servers of a test's own that can be moved, back and forth, while they run.
 * Everything in the server sees it move, as if someone had set the machine's time; the monotonic clock goes on.
 */
import { join } from "node:path";
import { compiledShim, folderForLibrary, writeMicros } from "./preload-shim.js";
import { command, type Reachable, until } from "./redis-command.js";
import type { Preload } from "./redis-server.js";

const SOURCE = "moved-clock.c";
const MICROS_PER_MS = 1_000;
/** TIME is cut to microseconds and Date.now to milliseconds. */
const ROUNDING_MS = 2;

export interface MovedClock {
  /** For `preloads` of each server that shall live by this clock. */
  readonly preload: Preload;
  /**
   * Sets how far the clock is ahead of this machine's, or behind it if negative; at first 0. Each call counts from the
   * machine's clock, not from the last call. Resolves when TIME of each given server shows it.
   */
  move(offsetMs: number, ...servers: readonly Reachable[]): Promise<void>;
}

/** Why `createMovedClock` cannot work here, for `ctx.skip(reason)`; undefined when it can. */
export function clockShimUnavailable(): string | undefined {
  const shim = compiledShim(SOURCE);
  return "unavailable" in shim ? `no clock of a server can be moved: ${shim.unavailable}` : undefined;
}

/**
 * A clock that no server lives by yet. Its file is removed at the end of the test file.
 * @throws Error when `clockShimUnavailable()` gives a reason.
 */
export function createMovedClock(): MovedClock {
  const shim = compiledShim(SOURCE);
  if ("unavailable" in shim) throw new Error(shim.unavailable);
  const path = join(folderForLibrary(), "offset-micros");
  writeMicros(path, 0);
  return {
    preload: {
      library: shim.library,
      environment: { MOVED_CLOCK_FILE: path },
      // Its thread sleeps until an hour of the moved clock by the kernel's own, and so would never or always be awake.
      config: { "jemalloc-bg-thread": "no" },
    },
    async move(offsetMs, ...servers) {
      writeMicros(path, offsetMs);
      await Promise.all(servers.map((server) => untilMoved(server, offsetMs)));
    },
  };
}

async function untilMoved(server: Reachable, offsetMs: number): Promise<void> {
  const bounds = async () => {
    const askedMs = Date.now();
    const [seconds, micros] = (await command(server, "TIME")) as [string, string];
    const timeMs = Number(seconds) * 1_000 + Number(micros) / MICROS_PER_MS;
    return { leastMs: timeMs - Date.now() - ROUNDING_MS, mostMs: timeMs - askedMs + ROUNDING_MS };
  };
  const isThere = ({ leastMs, mostMs }: { leastMs: number; mostMs: number }) =>
    leastMs <= offsetMs && offsetMs <= mostMs;
  await until(`TIME of ${server.url} is moved by ${offsetMs} ms`, bounds, isThere);
}
