/**
 * What one fault happens to: a real Redis, coordinator processes over HTTP, importers that never rest, and the control. Everything is
 * this fault's own: server, folder, namespace, witness.
 */
import { existsSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import type { Bounds } from "../../packages/coordinator/src/guard/bounds.js";
import { lineAt } from "../../packages/coordinator/src/guard/line.js";
import type { Store } from "../../packages/coordinator/src/store.js";
import { parseStoreId } from "../../packages/coordinator/src/store-id.js";
import { openStore } from "../../packages/coordinator/src/stores/open-store.js";
import { parseStoreUrl } from "../../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../backdated.js";
import type { RedisBinary } from "../redis/redis-binary.js";
import { type DisposableRedisServer, launchRedisServer } from "../redis/redis-server.js";
import { Control } from "./control.js";
import { CoordinatorProcess } from "./coordinator-process.js";
import { Importer } from "./importer.js";
import { MintingImporter } from "./minting-importer.js";
import { Received } from "./received.js";

/** A fiftieth of the real ones, but for the touching, which real machines must keep up with. */
export const BOUNDS: Bounds = { epsMs: 40, gapMs: 6_000, touchEveryMs: 100 };
export const NAMESPACE = "main";
/** A safety net: a fault that never heals would else hang the run. */
const HEAL_LIMIT_MS = 60_000;
const DATA_FILES = ["dump.rdb", "appendonlydir"];
/** As many as a lease can hold: before a doubt there is room for it. */
const RUNS_ASKED = 64;

export interface WorldOptions {
  readonly binary: RedisBinary;
  readonly config: Record<string, string | string[]>;
  readonly nodeCount: number;
  readonly coordinatorCount: number;
  readonly hasWitness: boolean;
  readonly random: () => number;
}

export class World {
  readonly codes = new Map<string, number>();
  readonly coordinators: CoordinatorProcess[] = [];
  readonly random: () => number;
  readonly #options: WorldOptions;
  readonly #folder: string;
  readonly #servers: DisposableRedisServer[] = [];
  readonly #importers: Importer[] = [];
  #minting: MintingImporter | undefined;
  #received: Received | undefined;
  #storeId = "";
  #control: Control | undefined;
  #snapshots = 0;

  private constructor(options: WorldOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
    this.random = options.random;
  }

  /** Resolves when every importer has got its first runs. */
  static async make(options: WorldOptions): Promise<World> {
    const world = new World(options, await mkdtemp(join(tmpdir(), "callnumber-fault-")));
    try {
      await world.#begin();
      return world;
    } catch (error) {
      await world.dispose();
      throw error;
    }
  }

  async #begin(): Promise<void> {
    const { nodeCount, coordinatorCount } = this.#options;
    const master = await this.addServer();
    for (let node = 1; node < nodeCount; node++) await this.addServer({ replicaof: `127.0.0.1 ${master.port}` });
    await this.untilReplicated(master);
    await this.onStore(async (store) => {
      this.#storeId = await initBackdated(store, NAMESPACE, { nodeCount });
    });
    const id = parseStoreId(this.#storeId);
    if (id === undefined) throw new Error("no store id");
    this.#received = new Received((timeMs) => lineAt(id, 0, timeMs + BOUNDS.epsMs));
    // With replicas each node has coordinators of its own: which one may lease is for the guard to find out.
    for (const server of this.#servers) {
      for (let index = 0; index < coordinatorCount; index++) await this.addCoordinator(server);
    }
    for (const name of ["a", "b"]) this.#importers.push(new Importer(this.#importerOptions(name)));
    this.#minting = new MintingImporter(this.#importerOptions("minting"));
    this.#control = new Control(master, "control");
    for (const importer of [...this.#importers, this.#minting, this.#control]) importer.start();
    await this.untilLeasing();
  }

  get binary(): RedisBinary {
    return this.#options.binary;
  }

  /** Makes the namespace in a store that is not this world's. */
  async initOther(store: Store): Promise<void> {
    await initBackdated(store, NAMESPACE, { nodeCount: this.#options.nodeCount });
  }

  /** Ledger id of the newest lease. */
  async ledgerMark(): Promise<string> {
    return await this.on(this.server, async (redis) => {
      const ledger = this.key("ledger");
      if ((await redis.type(ledger)) !== "stream") return "none";
      return (await redis.xrevrange(ledger, "+", "-", "COUNT", 1))[0]?.[0] ?? "none";
    });
  }

  get storeId(): string {
    return this.#storeId;
  }

  get witnessFolder(): string {
    return join(this.#folder, "witness");
  }

  get received(): Received {
    return this.#received as Received;
  }

  get control(): Control {
    return this.#control as Control;
  }

  get callNumberCount(): number {
    return this.#minting?.callNumberCount ?? 0;
  }

  /** All that came twice, or should not have come. */
  get problems(): readonly string[] {
    const own = this.#minting?.repeatCount ?? 0;
    return [...this.received.problems, ...(own > 0 ? [`${own} call numbers were made twice by one client`] : [])];
  }

  get server(): DisposableRedisServer {
    return this.#servers[0] as DisposableRedisServer;
  }

  get servers(): readonly DisposableRedisServer[] {
    return this.#servers;
  }

  storeUrl(server: { readonly port: number } = this.server): string {
    return `redis://127.0.0.1:${server.port}?prefix=f:`;
  }

  key(name: "record" | "ledger" | "holders" | "reports"): string {
    return `f:{${NAMESPACE}}:${name}`;
  }

  async addServer(config: Record<string, string | string[]> = {}): Promise<DisposableRedisServer> {
    const ownConfig = {
      "repl-diskless-sync-delay": "0",
      "enable-debug-command": "yes",
      ...this.#options.config,
      ...config,
    };
    const server = await launchRedisServer(this.#options.binary, { config: ownConfig });
    this.#servers.push(server);
    return server;
  }

  async addCoordinator(server?: { readonly port: number }): Promise<CoordinatorProcess> {
    const { hasWitness } = this.#options;
    const settings = {
      storeUrl: this.storeUrl(server),
      name: `coordinator ${this.coordinators.length}`,
      bounds: BOUNDS,
      witnessFolder: hasWitness ? this.witnessFolder : null,
    };
    const coordinator = await CoordinatorProcess.start(settings, this.codes);
    this.coordinators.push(coordinator);
    return coordinator;
  }

  /** Sends commands to a server, by a connection that is closed afterwards. */
  async on<T>(server: { readonly port: number }, send: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis({
      host: "127.0.0.1",
      port: server.port,
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

  /** Uses the store as an operator's verb does. */
  async onStore<T>(act: (store: Store) => Promise<T>, server?: { readonly port: number }): Promise<T> {
    const { store } = await openStore(parseStoreUrl(this.storeUrl(server)), { create: false, bounds: BOUNDS });
    try {
      return await act(store);
    } finally {
      await store.close();
    }
  }

  async untilReplicated(master: { readonly port: number } = this.server): Promise<void> {
    const replicaCount = this.#options.nodeCount - 1;
    if (replicaCount === 0) return;
    await this.on(master, async (redis) => {
      while ((await redis.wait(replicaCount, 1_000)) < replicaCount) await delay(10);
    });
  }

  /** Resolves when all nodes but one follow that one, and have what it has. */
  async untilReplicatedSomewhere(): Promise<void> {
    const replicaCount = this.#options.nodeCount - 1;
    for (;;) {
      const texts = await Promise.all(
        this.#servers.map((server) => this.on(server, (redis) => redis.info("replication"))),
      );
      if (texts.filter((text) => text.includes("master_link_status:up")).length === replicaCount) return;
      await delay(10);
    }
  }

  /** Keeps a copy of the server's folder as it is now, as a backup or a snapshot of the disk would. */
  async snapshot(server = this.server): Promise<string> {
    const path = join(this.#folder, `snapshot-${this.#snapshots++}`);
    await cp(server.directory, path, { recursive: true });
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

  /** Lets everybody work for a while, so that there is something to lose. */
  async work(leaseCount = 6): Promise<void> {
    const until = this.received.leaseCount + leaseCount;
    const givenUpAt = Date.now() + HEAL_LIMIT_MS;
    while (this.received.leaseCount < until) {
      if (Date.now() > givenUpAt) throw new Error(`no ${leaseCount} leases came in ${HEAL_LIMIT_MS} ms`);
      await delay(5);
    }
  }

  /** Resolves to the milliseconds until every importer got runs that it asked for after this call. */
  async untilLeasing(): Promise<number> {
    const begin = performance.now();
    const all = Promise.all(this.#importers.map((importer) => importer.nextLease()));
    const limit = delay(HEAL_LIMIT_MS, "late", { ref: false });
    if ((await Promise.race([all, limit])) === "late") {
      throw new Error(`no lease in ${HEAL_LIMIT_MS} ms; refused with ${[...this.codes.keys()].join(", ")}`);
    }
    return performance.now() - begin;
  }

  /** Resolves when a refusal with that code was seen, by an importer or in a coordinator's log. */
  async untilSeen(code: string): Promise<void> {
    const before = this.codes.get(code) ?? 0;
    const givenUpAt = Date.now() + HEAL_LIMIT_MS;
    while ((this.codes.get(code) ?? 0) <= before) {
      if (Date.now() > givenUpAt)
        throw new Error(`nobody was refused with ${code}; seen: ${[...this.codes.keys()].join(", ")}`);
      await delay(5);
    }
  }

  /** Ends the load; what was received can be read afterwards. */
  async rest(): Promise<void> {
    await Promise.all([...this.#importers, this.#minting, this.#control].map((one) => one?.stop()));
  }

  async dispose(): Promise<void> {
    for (const server of this.#servers) await server.kill("SIGCONT").catch(() => {});
    await this.rest();
    await Promise.all(this.coordinators.map((coordinator) => coordinator.kill()));
    await Promise.all(this.#servers.map((server) => server.dispose()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  #importerOptions(name: string): ConstructorParameters<typeof Importer>[0] {
    return {
      name,
      namespace: NAMESPACE,
      coordinators: () => this.coordinators.map(({ url }) => url),
      received: this.received,
      codes: this.codes,
      runCount: RUNS_ASKED,
    };
  }
}
