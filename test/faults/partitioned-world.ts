/**
 * A world of three hosts on a network of their own, each with a Redis node, a Sentinel and a coordinator. Four importers with the real
 * client, processes on those hosts: two on the master's host, one on each other host. And a plain counter on two hosts, the control.
 * Everything runs in the hosts' networks and communicates with this process through pipes.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Bounds } from "../../packages/coordinator/src/guard/bounds.js";
import { type Network, type NetworkHost, startNetwork } from "../redis/network-partition.js";
import { startSentinelRedis } from "../redis/sentinel-redis.js";
import { sentinelStoreUrlAt, TESTER_LOGIN } from "../redis/shipped-users.js";
import { CallNumberCheck } from "./call-number-check.js";
import type { Control } from "./control.js";
import { killed, type SpawnProgram } from "./coordinator-process.js";
import type { Load, Workplace } from "./load.js";
import {
  type MintingEvent,
  type MintingListener,
  MintingProcess,
  type MintingSettings,
  noteEvent,
} from "./minting-process.js";
import { World, type WorldOptions } from "./world.js";

const HOST_COUNT = 3;
/** The first master's host: two importers work there. */
export const MASTER_HOST = 0;
const IMPORTER_HOSTS = [MASTER_HOST, MASTER_HOST, 1, 2];
const CONTROL_HOSTS = [MASTER_HOST, 1];
const COMMAND = fileURLToPath(new URL("../../packages/cli/bin/callnumber.js", import.meta.url));
const PLAIN_COUNTER = fileURLToPath(new URL("./plain-counter-process.mjs", import.meta.url));
/** Runs a second after a recovery: four importers at the pace below use less. */
const RATE = 16;
const PACE = { takeCount: 1_024, pauseMs: 20 };
const SPARE_RUNS = 6;

export interface PartitionBounds {
  readonly bounds: Bounds;
  readonly preflightEveryMs: number;
  /** How long a node is silent before a Sentinel holds it to be down. */
  readonly downAfterMs: number;
  /** How long a client waits for a run before it reports why none comes. */
  readonly waitTimeoutMs: number;
}

export class PartitionedWorld extends World {
  readonly #options: PartitionBounds;
  readonly #load: HostLoad;
  #network: Network | undefined;

  constructor(options: PartitionBounds & Pick<WorldOptions, "random">) {
    const load = new HostLoad(options.waitTimeoutMs);
    super({ random: options.random, load }, options.bounds);
    this.#options = options;
    this.#load = load;
  }

  get network(): Network {
    return this.#network as Network;
  }

  get importers(): readonly HostImporter[] {
    return this.#load.importers;
  }

  #storeUrl = "";
  /** Of use on the hosts only. */
  get storeUrl(): string {
    return this.#storeUrl;
  }

  async begin(): Promise<void> {
    const { preflightEveryMs, downAfterMs } = this.#options;
    const network = await startNetwork(HOST_COUNT);
    this.#network = network;
    this.defer(() => network.end());
    const redis = await startSentinelRedis({ launch: network.launch, downAfterMs, config: { appendonly: "yes" } });
    this.defer(() => redis.end());
    this.#storeUrl = sentinelStoreUrlAt(redis.sentinelHosts, redis.masterName);
    const storeId = await this.#init(network.hosts[MASTER_HOST] as NetworkHost);
    for (const [index, { spawn }] of network.hosts.entries()) {
      const checkpointDir = this.#checkpointOn(index);
      await this.addCoordinator({ storeUrl: this.#storeUrl, preflightEveryMs, checkpointDir }, spawn);
    }
    const addresses = redis.sentinelHosts.split(",").map((address) => new URL(`redis://${address}`));
    const sentinels = addresses.map(({ hostname: host, port }) => ({ host, port }));
    this.#load.hosts = network.hosts;
    const control = new CountersOnHosts(
      CONTROL_HOSTS.map((host) => network.hosts[host] as NetworkHost),
      { sentinels, name: redis.masterName, ...TESTER_LOGIN },
    );
    await this.startLoad(storeId, control);
  }

  /** As an operator does, on one of the hosts. Resolves to the store id. */
  async #init(host: NetworkHost): Promise<string> {
    const words = [
      "--nodes",
      `${HOST_COUNT}`,
      "--rate",
      `${RATE}`,
      "--checkpoint-dir",
      this.#checkpointOn(MASTER_HOST),
    ];
    const child = host.spawn(process.execPath, [COMMAND, "init", "--store", this.#storeUrl, ...words, "--json"]);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (output += String(chunk)));
    await once(child, "close");
    if (child.exitCode !== 0) throw new Error(`init failed: ${output}`);
    return (JSON.parse(output) as { storeId: string }).storeId;
  }

  #checkpointOn(host: number): string {
    return join(this.folder, `checkpoint-${host}`);
  }
}

/** Plain counters that are processes on their hosts. */
class CountersOnHosts implements Control {
  repeatCount = 0;
  readonly #seen = new Set<number>();
  #children: readonly ChildProcess[] = [];

  constructor(
    readonly hosts: readonly NetworkHost[],
    readonly settings: object,
  ) {}

  get count(): number {
    return this.#seen.size;
  }

  start(): void {
    this.#children = this.hosts.map(({ spawn }) => {
      const stdio = ["ignore", "inherit", "inherit", "ipc"] as const;
      const child = spawn(process.execPath, [PLAIN_COUNTER, JSON.stringify(this.settings)], { stdio: [...stdio] });
      child.on("message", (number: number) => {
        if (this.#seen.has(number)) this.repeatCount++;
        this.#seen.add(number);
      });
      return child;
    });
  }

  async stop(): Promise<void> {
    for (const child of this.#children) await killed(child);
  }
}

class HostLoad implements Load {
  hosts: readonly NetworkHost[] = [];
  importers: readonly HostImporter[] = [];
  readonly #check = new CallNumberCheck();
  readonly #alarms: string[] = [];

  constructor(readonly waitTimeoutMs: number) {}

  get callNumberCount(): number {
    return this.#check.count;
  }

  get problems(): readonly string[] {
    return [
      ...this.#alarms,
      ...this.#check.findings,
      ...this.importers.flatMap(({ process: { failure } }) => failure ?? []),
    ];
  }

  start(workplace: Workplace, expectedStoreId: string): void {
    const { waitTimeoutMs } = this;
    this.importers = IMPORTER_HOSTS.map((host, index) => {
      const name = `importer ${index + 1} on host ${host + 1}`;
      const coordinator = workplace.coordinators()[host] as string;
      const given = { coordinator, namespace: workplace.namespace, expectedStoreId, waitTimeoutMs, holder: { name } };
      const onWritten = this.#check.reader(expectedStoreId, name);
      const onEvent = (event: MintingEvent) => {
        noteEvent(workplace, name, event);
        if (event.event === "alarm") this.#alarms.push(`${name} stopped permanently: ${event.message}`);
      };
      const settings = { ...given, ...PACE, spareRuns: SPARE_RUNS };
      return new HostImporter(name, settings, { onWritten, onEvent }, (this.hosts[host] as NetworkHost).spawn);
    });
  }

  nextLeases(): Promise<unknown> {
    return Promise.all(this.importers.map((importer) => importer.process.leases.wait()));
  }

  noteControl(): void {}

  async stop(): Promise<void> {
    await Promise.all(this.importers.map((importer) => importer.process.stop()));
  }
}

type Rejection = Extract<MintingEvent, { readonly code: string }>;

/** An importer process on some host, and what became of it since a given moment. */
export class HostImporter {
  readonly process: MintingProcess;
  readonly #leasedAtMs: number[] = [];
  readonly #rejections: Rejection[] = [];
  #byteCount = 0;
  #writtenAtMs = 0;

  constructor(
    readonly name: string,
    settings: MintingSettings,
    { onWritten, onEvent }: MintingListener,
    spawn: SpawnProgram,
  ) {
    const written = (piece: Buffer) => {
      this.#byteCount += piece.length;
      this.#writtenAtMs = Date.now();
      onWritten(piece);
    };
    const noted = (event: MintingEvent) => {
      if (event.event === "lease") this.#leasedAtMs.push(event.atMs);
      if (event.event === "refused") this.#rejections.push(event);
      onEvent(event);
    };
    this.process = new MintingProcess(settings, { onWritten: written, onEvent: noted }, spawn);
  }

  /** What is counted from now on. */
  since(): Since {
    const atMs = Date.now();
    const [leaseCount, byteCount, rejectionCount] = [this.#leasedAtMs.length, this.#byteCount, this.#rejections.length];
    return {
      leaseCount: () => this.#leasedAtMs.length - leaseCount,
      callNumberCount: () => Math.floor((this.#byteCount - byteCount) / 8),
      wroteForMs: () => Math.max(this.#writtenAtMs - atMs, 0),
      rejection: () => this.#rejections[rejectionCount],
      // The first may have been in flight: only the second was surely requested afterwards.
      nextLeaseAfterMs: () => {
        const leasedAtMs = this.#leasedAtMs[leaseCount + 1];
        return leasedAtMs === undefined ? undefined : leasedAtMs - atMs;
      },
    };
  }
}

export interface Since {
  leaseCount(): number;
  callNumberCount(): number;
  /** Until when it wrote call numbers. */
  wroteForMs(): number;
  /** The first call that its client rejected. */
  rejection(): Rejection | undefined;
  /** When it got a lease that it had requested since then. */
  nextLeaseAfterMs(): number | undefined;
}
