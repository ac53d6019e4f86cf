/**
 * A world of three hosts on a network of their own, each with a Redis node, a Sentinel and a coordinator. Four importers with the real
 * client, processes on those hosts: two beside the master, one on each other host. And a plain counter on two hosts, the control.
 * Everything runs in the hosts' networks and talks with this process through pipes.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Bounds } from "../../packages/coordinator/src/guard/bounds.js";
import { ceilingAt } from "../../packages/coordinator/src/guard/ceiling.js";
import { parseStoreId } from "../../packages/coordinator/src/guard/store-id.js";
import { type Network, type NetworkHost, startNetwork } from "../redis/network-partition.js";
import { type SentinelRedis, startSentinelRedis } from "../redis/sentinel-redis.js";
import { sentinelStoreUrlAt, TESTER_LOGIN } from "../redis/shipped-users.js";
import { CallNumberCheck } from "./call-number-check.js";
import { CoordinatorProcess, type SpawnProgram } from "./coordinator-process.js";
import type { Scene } from "./fault.js";
import { type MintingEvent, type MintingListener, MintingProcess, type MintingSettings } from "./minting-process.js";
import { Received } from "./received.js";
import { NAMESPACE, newFolder } from "./world.js";

const HOST_COUNT = 3;
/** The first master's host: two importers work there. */
export const MASTER_HOST = 0;
const IMPORTER_HOSTS = [MASTER_HOST, MASTER_HOST, 1, 2];
const CONTROL_HOSTS = [MASTER_HOST, 1];
const COMMAND = fileURLToPath(new URL("../../packages/cli/bin/callnumber.js", import.meta.url));
const PLAIN_COUNTER = fileURLToPath(new URL("./plain-counter-process.mjs", import.meta.url));
/** Runs a second after a doubt: four importers at the pace below use less. */
const RATE = 16;
const PACE = { takeCount: 1_024, pauseMs: 20 };
const SPARE_RUNS = 6;
const LIMIT_MS = 1_500_000;

export interface PartitionedWorldOptions {
  readonly bounds: Bounds;
  readonly preflightEveryMs: number;
  /** How long a node is silent before a Sentinel holds it to be down. */
  readonly downAfterMs: number;
  /** How long a client waits for a run before it says why none comes. */
  readonly waitTimeoutMs: number;
}

export class PartitionedWorld implements Scene {
  readonly codes = new Map<string, number>();
  readonly importers: HostImporter[] = [];
  readonly check = new CallNumberCheck();
  readonly #problems: string[] = [];
  readonly #coordinators: CoordinatorProcess[] = [];
  readonly #controls: ChildProcess[] = [];
  readonly #controlNumbers = new Set<number>();
  #controlRepeatCount = 0;
  #received: Received | undefined;
  #codesBefore: ReadonlyMap<string, number> = new Map();

  private constructor(
    readonly network: Network,
    readonly redis: SentinelRedis,
    readonly folder: string,
  ) {}

  /** Resolves when every importer has got its first runs. Everything ends with `dispose`. */
  static async make(options: PartitionedWorldOptions): Promise<PartitionedWorld> {
    const network = await startNetwork(HOST_COUNT);
    const { launch } = network;
    const redis = await startSentinelRedis({ launch, downAfterMs: options.downAfterMs, config: { appendonly: "yes" } });
    const world = new PartitionedWorld(network, redis, await newFolder());
    try {
      await world.#begin(options);
      return world;
    } catch (error) {
      await world.dispose();
      throw error;
    }
  }

  get received(): Received {
    return this.#received as Received;
  }

  get control() {
    return { count: this.#controlNumbers.size, repeatCount: this.#controlRepeatCount };
  }

  get callNumberCount(): number {
    return this.check.count;
  }

  get problems(): readonly string[] {
    const failures = this.importers.flatMap(({ failure }) => failure ?? []);
    return [...this.#problems, ...this.received.problems, ...this.check.findings, ...failures];
  }

  noteProblem(problem: string): void {
    this.#problems.push(problem);
  }

  beginInjection(): void {
    this.#codesBefore = new Map(this.codes);
  }

  async work(leaseCount = 6): Promise<void> {
    const wanted = this.received.leaseCount + leaseCount;
    await this.until(`${leaseCount} leases`, () => this.received.leaseCount >= wanted);
  }

  async untilLeasing(): Promise<number> {
    const begin = performance.now();
    const since = this.importers.map((importer) => importer.since());
    await this.until("every importer leases", () => since.every((one) => one.askedLeaseAfterMs() !== undefined));
    return performance.now() - begin;
  }

  /** @throws Error that tells what was seen instead, when it does not come about. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const givenUpAt = Date.now() + LIMIT_MS;
    while (!isSo()) {
      const [failure] = this.importers.flatMap(({ failure }) => failure ?? []);
      if (failure !== undefined) throw new Error(failure);
      if (Date.now() > givenUpAt) {
        const seen = [...this.codes].map(([code, count]) => `${code} ${count - (this.#codesBefore.get(code) ?? 0)}`);
        throw new Error(`not in ${LIMIT_MS} ms: ${what}; refused since the injection began: ${seen.join(", ")}`);
      }
      await delay(10);
    }
  }

  async rest(): Promise<void> {
    await Promise.all(this.importers.map((importer) => importer.stop()));
    for (const control of this.#controls) await killed(control);
  }

  async dispose(): Promise<void> {
    await this.rest();
    for (const coordinator of this.#coordinators) await coordinator.kill();
    await this.redis.end();
    await this.network.end();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #begin(options: PartitionedWorldOptions): Promise<void> {
    const { sentinelHosts, masterName } = this.redis;
    const storeUrl = sentinelStoreUrlAt(sentinelHosts, masterName);
    const storeId = await this.#init(storeUrl);
    const id = parseStoreId(storeId);
    if (id === undefined) throw new Error(`not a store id: ${storeId}`);
    this.#received = new Received((_, version, timeMs) => ceilingAt(id, version, timeMs + options.bounds.epsMs));
    const { bounds, preflightEveryMs, waitTimeoutMs } = options;
    for (const [index, { spawn }] of this.network.hosts.entries()) {
      const name = `coordinator ${index}`;
      const settings = { storeUrl, name, bounds, preflightEveryMs, checkpointDir: this.#checkpoint(index) };
      const all = { ...settings, markerFolder: null };
      this.#coordinators.push(await CoordinatorProcess.start(all, this.codes, spawn));
    }
    for (const [index, host] of IMPORTER_HOSTS.entries()) {
      this.#addImporter(`importer ${index + 1} on host ${host + 1}`, host, storeId, waitTimeoutMs);
    }
    const sentinels = sentinelHosts.split(",").map((address) => new URL(`redis://${address}`));
    const addresses = sentinels.map(({ hostname: host, port }) => ({ host, port }));
    const settings = { sentinels: addresses, name: masterName, ...TESTER_LOGIN };
    for (const host of CONTROL_HOSTS) this.#addControl(this.network.hosts[host] as NetworkHost, settings);
    await this.untilLeasing();
  }

  /** As an operator does, on one of the hosts. Resolves to the store id. */
  async #init(storeUrl: string): Promise<string> {
    const words = ["--nodes", `${HOST_COUNT}`, "--rate", `${RATE}`, "--checkpoint-dir", this.#checkpoint(MASTER_HOST)];
    const host = this.network.hosts[MASTER_HOST] as NetworkHost;
    const child = host.spawn(process.execPath, [COMMAND, "init", "--store", storeUrl, ...words, "--json"]);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (said += String(chunk)));
    await once(child, "close");
    if (child.exitCode !== 0) throw new Error(`init failed: ${said}`);
    return (JSON.parse(said) as { storeId: string }).storeId;
  }

  #checkpoint(host: number): string {
    return join(this.folder, `checkpoint-${host}`);
  }

  #addImporter(name: string, host: number, expectedStoreId: string, waitTimeoutMs: number): void {
    const coordinator = (this.#coordinators[host] as CoordinatorProcess).url;
    const given = { coordinator, namespace: NAMESPACE, expectedStoreId, waitTimeoutMs, spareRuns: SPARE_RUNS };
    const onWritten = this.check.reader(expectedStoreId, name);
    const onEvent = (event: MintingEvent) => {
      if (event.event === "lease") this.received.note({ importer: name, receivedAtMs: event.atMs, ...event });
      else this.codes.set(event.code, (this.codes.get(event.code) ?? 0) + 1);
      if (event.event === "alarm") this.noteProblem(`${name} stopped for good: ${event.message}`);
    };
    const settings = { ...given, ...PACE, holder: { name } };
    const { spawn } = this.network.hosts[host] as NetworkHost;
    this.importers.push(new HostImporter(name, settings, { onWritten, onEvent }, spawn));
  }

  #addControl(host: NetworkHost, settings: object): void {
    const stdio = ["ignore", "inherit", "inherit", "ipc"] as const;
    const child = host.spawn(process.execPath, [PLAIN_COUNTER, JSON.stringify(settings)], { stdio: [...stdio] });
    child.on("message", (number: number) => {
      if (this.#controlNumbers.has(number)) this.#controlRepeatCount++;
      this.#controlNumbers.add(number);
    });
    this.#controls.push(child);
  }
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

interface Refusal {
  readonly atMs: number;
  readonly code: string;
  readonly message: string;
}

/** An importer process on some host, and what became of it since a given moment. */
export class HostImporter {
  readonly #process: MintingProcess;
  readonly #leasedAtMs: number[] = [];
  readonly #refusals: Refusal[] = [];
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
      if (event.event === "refused") this.#refusals.push(event);
      onEvent(event);
    };
    this.#process = new MintingProcess(settings, { onWritten: written, onEvent: noted }, spawn);
  }

  get failure(): string | undefined {
    return this.#process.failure;
  }

  get leaseCount(): number {
    return this.#leasedAtMs.length;
  }

  /** What is counted from now on. */
  since(): Since {
    const atMs = Date.now();
    const [leaseCount, byteCount, rejectionCount] = [this.leaseCount, this.#byteCount, this.#refusals.length];
    return {
      leaseCount: () => this.leaseCount - leaseCount,
      callNumberCount: () => Math.floor((this.#byteCount - byteCount) / 8),
      wroteForMs: () => Math.max(this.#writtenAtMs - atMs, 0),
      refusal: () => this.#refusals[rejectionCount],
      // The first may have been under way: only the second was surely asked for afterwards.
      askedLeaseAfterMs: () => {
        const leasedAtMs = this.#leasedAtMs[leaseCount + 1];
        return leasedAtMs === undefined ? undefined : leasedAtMs - atMs;
      },
    };
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }
}

export interface Since {
  leaseCount(): number;
  callNumberCount(): number;
  /** Until when it wrote call numbers. */
  wroteForMs(): number;
  /** The first call that its client refused. */
  refusal(): Refusal | undefined;
  /** When it got a lease that it had asked for since then. */
  askedLeaseAfterMs(): number | undefined;
}
