/** Faults of Redis servers. */
import { clockShimUnavailable, createMovedClock, type MovedClock } from "../redis/moved-clock.js";
import { createWatchedDisk, type WatchedDisk, watchedDiskUnavailable } from "../redis/watched-disk.js";
import { type Fault, type FaultWords, faultOf } from "./fault.js";
import { RedisWorld, type RedisWorldOptions } from "./redis-world.js";

const AOF = { appendonly: "yes", appendfsync: "everysec" };

type Settings = Pick<RedisWorldOptions, "config" | "nodeCount" | "coordinatorCount" | "hasWitness" | "runIn" | "store">;

/** With a single server with an AOF, two coordinators and a witness, unless it says otherwise. */
const SETTINGS: Settings = {
  config: AOF,
  nodeCount: 1,
  coordinatorCount: 2,
  hasWitness: true,
  runIn: [],
  store: {},
};

export type RedisFaultWords = FaultWords &
  Partial<Settings> & { readonly inject: (world: RedisWorld) => Promise<void> };

export function redisFault({ inject, ...given }: RedisFaultWords): Fault {
  return faultOf(given, async (options) => {
    const world = await RedisWorld.make({ ...SETTINGS, preloads: [], ...settingsIn(given), ...options });
    return { world, inject: () => inject(world) };
  });
}

/** With servers whose clock, or whose disk, is ours to move. */
export function shimmedFault({
  inject,
  ...given
}: Omit<RedisFaultWords, "inject"> & {
  readonly inject: (
    world: RedisWorld,
    shims: { readonly disk: WatchedDisk; readonly clock: MovedClock },
  ) => Promise<void>;
}): Fault {
  const unavailable = () => watchedDiskUnavailable() ?? clockShimUnavailable();
  return faultOf({ ...given, unavailable }, async (options) => {
    const shims = { disk: createWatchedDisk(), clock: createMovedClock() };
    const preloads = [shims.disk.preload, shims.clock.preload];
    const world = await RedisWorld.make({ ...SETTINGS, preloads, ...settingsIn(given), ...options });
    return { world, inject: () => inject(world, shims) };
  });
}

function settingsIn(given: Partial<Settings>): Settings {
  const names = Object.keys(SETTINGS) as (keyof Settings)[];
  return Object.fromEntries(names.map((name) => [name, given[name] ?? SETTINGS[name]])) as unknown as Settings;
}
