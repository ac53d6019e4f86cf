/** Empty places for a store, each of its own, and a coordinator that leases from one as an importer would have it. */
import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Lease } from "@callnumber/protocol/api";
import { onTestFinished } from "vitest";
import { removeWithMarkers } from "../../../test/markers-of-stores.js";
import { sharedPostgres, storeUrlAt } from "../../../test/postgres/test-postgres.js";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { Coordinator } from "../src/coordinator.js";
import type { Bounds } from "../src/guard/clocks.js";
import { MemoryStore } from "../src/stores/memory.js";
import { PostgresStore } from "../src/stores/postgres/store.js";
import { RedisStore } from "../src/stores/redis/store.js";
import { SqliteStore } from "../src/stores/sqlite/store.js";
import type { Store } from "../src/stores/store.js";
import { describeStore, parseStoreUrl } from "../src/stores/store-url.js";
import { holder, NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { postgresAddressForTest } from "./stores-for-test.js";

const LEASE_TRIES_MAX = 200;

export interface PlaceOptions {
  readonly bounds?: Bounds;
  /** The clock of the coordinator that opens the store; an embedded store has no other. */
  readonly now?: () => number;
}

export interface Place {
  readonly url: string;
  /** As seals and checkpoints name it. */
  readonly place: string;
  /** It is closed when the test ends, at the latest. */
  open(options?: PlaceOptions): Promise<Store>;
}

export type MakePlace = () => Promise<Place>;

export const memoryPlace: MakePlace = async () => {
  const store = new MemoryStore();
  return { url: "memory:", place: `memory:${randomUUID()}`, open: async () => store };
};

export const embeddedPlace: MakePlace = async () => {
  const folder = await mkdtemp(join(tmpdir(), "callnumber-test-"));
  onTestFinished(() => removeWithMarkers(folder));
  const path = join(folder, "store.db");
  const open = async ({ bounds: { epsMs } = SHORT_BOUNDS, ...options }: PlaceOptions = {}) =>
    closedAtEnd(new SqliteStore({ path, create: true, epsMs, ...options }));
  return { url: `sqlite:${path}`, place: `sqlite:${path}`, open };
};

export const redisPlace: MakePlace = async () => placeAt(sharedRedis().operatorUrl);

/** A schema of its own, whose tables the move makes. */
export const postgresPlace: MakePlace = async () => {
  const url = storeUrlAt(sharedPostgres());
  const address = postgresAddressForTest(url);
  const open = async () => closedAtEnd(await PostgresStore.open({ ...address, create: true }));
  return { url, place: describeStore(address), open };
};

/** A prefix of its own on that server, for its operator. */
export function redisPlaceAt(serverUrl: string): Place {
  return placeAt(`${asOperator(serverUrl)}?prefix=callnumber:test-${randomUUID()}:`);
}

function placeAt(url: string): Place {
  const address = parseStoreUrl(url);
  if (address.kind !== "redis") throw new Error(`${url} is no Redis`);
  const open = async () => closedAtEnd(await RedisStore.open({ ...address, quorumTimeoutMs: 2_000 }));
  return { url, place: describeStore(address), open };
}

function closedAtEnd(store: Store): Store {
  onTestFinished(() => store.close());
  return store;
}

export function coordinatorOf(store: Store, options: PlaceOptions = {}): Coordinator {
  return new Coordinator({ store, name: `coordinator of ${store.kind}`, bounds: SHORT_BOUNDS, ...options });
}

/** Leases; waits where the coordinator says that waiting helps, as a client does. */
export async function leaseOf(
  coordinator: Coordinator,
  { runCount = 1, last }: { readonly runCount?: number; readonly last?: Lease | undefined } = {},
): Promise<Lease> {
  const lastRun = last === undefined ? null : last.version * 2 ** 30 + last.firstRun + last.runCount - 1;
  for (let tries = 1; ; tries++) {
    const request = { runCount, nonce: randomUUID(), holder: holder, lastRun, proof: last?.proof ?? null };
    try {
      return await coordinator.lease(NAMESPACE, { ...request, sentAtMs: Date.now() });
    } catch (error) {
      const { code, retryAfterMs = 20 } = error as { code?: string; retryAfterMs?: number };
      if (code !== "run_ceiling_reached" || tries === LEASE_TRIES_MAX) throw error;
      await delay(retryAfterMs);
    }
  }
}

/** Every run of the leases, as ledger ids. */
export function runsOf(leases: readonly Pick<Lease, "version" | "firstRun" | "runCount">[]): readonly number[] {
  return leases.flatMap(({ version, firstRun, runCount }) =>
    Array.from({ length: runCount }, (_, offset) => version * 2 ** 30 + firstRun + offset),
  );
}
