/** A world on real Redis servers, one or a master with replicas, and the faults that happen there. */
import { existsSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import type { Bounds } from "../../packages/coordinator/src/guard/clocks.js";
import { type BackdatedOptions, initBackdated } from "../backdated.js";
import {
  type ControlledMachine,
  controlledMachineUnavailable,
  newControlledMachine,
} from "../redis/controlled-machine.js";
import type { RedisBinary } from "../redis/redis-binary.js";
import { type DisposableRedisServer, launchRedisServer, type Preload } from "../redis/redis-server.js";
import { storeUrlAt, TESTER_LOGIN } from "../redis/shipped-users.js";
import { Control, redisCounter } from "./control.js";
import { type Fault, type FaultSettings, faultOf } from "./run-fault.js";
import { BOUNDS, copyFolder, NAMESPACE, World, type WorldOptions } from "./world.js";

/** Among the keys that the coordinators' user may touch. */
const KEY_PREFIX = "callnumber:f:";
/** No server listens there: a replica that follows it lags. */
export const UNUSED_PORT = 1;
const DATA_FILES = ["dump.rdb", "appendonlydir"];

interface RedisWorldOptions extends WorldOptions, RedisSettings {
  readonly binary: RedisBinary;
  readonly preload?: Preload | undefined;
}

/** Default: a single server with an AOF, two coordinators and a checkpoint. */
interface RedisSettings extends Pick<WorldOptions, "hasCheckpoint"> {
  /** Lines of redis.conf. */
  readonly config?: Readonly<Record<string, string | string[]>>;
  readonly nodeCount?: number;
  /** For each node. */
  readonly coordinatorCount?: number;
  /** Words before the program of each server. */
  readonly runIn?: readonly string[];
  readonly store?: Pick<BackdatedOptions, "ageDays" | "firstRun">;
  /** Default: those of the suite. */
  readonly bounds?: Bounds;
}

const DEFAULTS = {
  config: { appendonly: "yes", appendfsync: "everysec" },
  nodeCount: 1,
  coordinatorCount: 2,
  runIn: [],
  store: {},
  preload: undefined,
  bounds: BOUNDS,
};

export interface Address {
  readonly port: number;
}

export class RedisWorld extends World {
  readonly servers: DisposableRedisServer[] = [];
  readonly #options: RedisWorldOptions & Required<Omit<RedisWorldOptions, "hasCheckpoint" | "load">>;
  #snapshots = 0;

  constructor(options: RedisWorldOptions) {
    super(options, options.bounds);
    this.#options = { ...DEFAULTS, ...options };
  }

  async begin(): Promise<void> {
    const { nodeCount, coordinatorCount, store: age } = this.#options;
    const master = await this.addServer();
    for (let node = 1; node < nodeCount; node++) await this.addServer({ replicaof: `127.0.0.1 ${master.port}` });
    await this.untilReplicated(master);
    const storeId = await this.onStore((store) => initBackdated(store, NAMESPACE, { nodeCount, ...age }));
    // With replicas each node has coordinators of its own: which one may lease is for the guard to find out.
    for (const server of this.servers) {
      for (let index = 0; index < coordinatorCount; index++) await this.addCoordinatorAt(server);
    }
    await this.startLoad(storeId, new Control(redisCounter(this.servers)));
  }

  get binary(): RedisBinary {
    return this.#options.binary;
  }

  get server(): DisposableRedisServer {
    return this.servers[0] as DisposableRedisServer;
  }

  get storeUrl(): string {
    return this.storeUrlAt(this.server);
  }

  storeUrlAt({ port }: Address): string {
    return `${storeUrlAt("127.0.0.1", port)}?prefix=${KEY_PREFIX}`;
  }

  key(name: "record" | "ledger" | "holders" | "reports"): string {
    return `${KEY_PREFIX}{${NAMESPACE}}:${name}`;
  }

  /** The fields of the namespace's record. */
  async record(server: Address = this.server): Promise<Record<string, string>> {
    return await this.on(server, (redis) => redis.hgetall(this.key("record")));
  }

  /** Copies a record back over the one that is there. */
  async copyBack(record: Record<string, string>): Promise<void> {
    await this.on(this.server, (redis) => redis.hset(this.key("record"), record));
  }

  /** Puts record and ledger back as they are now, when the function that this returns is called. */
  async saveKeys(): Promise<() => Promise<void>> {
    const keys = [this.key("record"), this.key("ledger")];
    const dumps = await this.on(this.server, (redis) => Promise.all(keys.map((key) => redis.dumpBuffer(key))));
    return async () => {
      await this.on(this.server, async (redis) => {
        for (const [index, key] of keys.entries()) await redis.restore(key, 0, dumps[index] as Buffer, "REPLACE");
      });
    };
  }

  addCoordinatorAt(address: Address) {
    return this.addCoordinator({ storeUrl: this.storeUrlAt(address) });
  }

  /** Ledger id of the newest lease. */
  async ledgerMark(): Promise<string> {
    return await this.on(this.server, async (redis) => {
      const ledger = this.key("ledger");
      if ((await redis.type(ledger)) !== "stream") return "none";
      return (await redis.xrevrange(ledger, "+", "-", "COUNT", 1))[0]?.[0] ?? "none";
    });
  }

  async addServer(config: Record<string, string | string[]> = {}): Promise<DisposableRedisServer> {
    const { binary, preload, runIn } = this.#options;
    const ownConfig = {
      "repl-diskless-sync-delay": "0",
      "enable-debug-command": "yes",
      ...this.#options.config,
      ...config,
    };
    const server = await launchRedisServer(binary, { config: ownConfig, preload, runIn });
    this.defer(async () => {
      await server.kill("SIGCONT");
      await server.dispose();
    });
    this.servers.push(server);
    return server;
  }

  async removeServer(server: DisposableRedisServer): Promise<void> {
    this.servers.splice(this.servers.indexOf(server), 1);
    await server.kill("SIGKILL");
  }

  /** Sends commands to a server as a user that may do everything, by a connection that is closed afterwards. */
  async on<T>(server: Address, send: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis({
      host: "127.0.0.1",
      port: server.port,
      ...TESTER_LOGIN,
      lazyConnect: true,
      enableReadyCheck: false,
      retryStrategy: () => null,
    });
    redis.on("error", () => {});
    try {
      await redis.connect();
      return await send(redis);
    } finally {
      redis.disconnect();
    }
  }

  /** Kills the server and starts it again, with something done in between. */
  async crash(meanwhile: () => Promise<unknown> = async () => {}): Promise<void> {
    await this.server.kill("SIGKILL");
    await meanwhile();
    await this.server.start();
  }

  async untilReplicated(master: Address = this.server, replicaCount = this.#options.nodeCount - 1): Promise<void> {
    if (replicaCount === 0) return;
    await this.on(master, async (redis) => {
      await this.until("all replicas have all", async () => (await redis.wait(replicaCount, 1_000)) >= replicaCount);
    });
  }

  /** Resolves when all nodes but one follow that one, and have what it has. */
  async untilReplicatedSomewhere(): Promise<void> {
    const replicaCount = this.#options.nodeCount - 1;
    await this.until("all nodes but one are linked", async () => {
      const texts = await Promise.all(
        this.servers.map((server) => this.on(server, (redis) => redis.info("replication"))),
      );
      return texts.filter((text) => text.includes("master_link_status:up")).length === replicaCount;
    });
  }

  /** Keeps a copy of the server's folder as it is now, as a backup or a snapshot of the disk would. */
  async snapshot(server = this.server): Promise<string> {
    const path = join(this.folder, `snapshot-${this.#snapshots++}`);
    await copyFolder(server.directory, path, (name) => !name.endsWith(".sock"));
    return path;
  }

  /** Puts a copy back in place of what the stopped server has now. */
  async restore(snapshot: string, server = this.server): Promise<void> {
    for (const name of DATA_FILES) {
      await rm(join(server.directory, name), { recursive: true, force: true });
      if (existsSync(join(snapshot, name)))
        await cp(join(snapshot, name), join(server.directory, name), { recursive: true });
    }
  }
}

export function redisFault(
  name: string,
  settings: FaultSettings & RedisSettings,
  inject: (world: RedisWorld) => Promise<void>,
): Fault {
  return faultOf(name, settings, (options) => new RedisWorld({ ...settings, ...options }), inject);
}

/** With servers whose clock and disk the fault controls. */
class ShimmedWorld extends RedisWorld {
  readonly disk: ControlledMachine["disk"];
  readonly clock: ControlledMachine["clock"];

  constructor(options: RedisWorldOptions) {
    const { preload, disk, clock } = newControlledMachine();
    super({ ...options, preload });
    [this.disk, this.clock] = [disk, clock];
  }
}

export function shimmedFault(
  name: string,
  settings: FaultSettings & RedisSettings,
  inject: (world: ShimmedWorld) => Promise<void>,
): Fault {
  return faultOf(
    name,
    { ...settings, unavailable: controlledMachineUnavailable },
    (options) => new ShimmedWorld({ ...settings, ...options }),
    inject,
  );
}
