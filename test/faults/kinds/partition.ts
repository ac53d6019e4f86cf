/**
 * A real partition. On three hosts each a coordinator, a Redis node and a Sentinel; importers with the real client, processes on those
 * hosts; and a plain counter on two hosts, the control. Everything runs in the hosts' networks and communicates with this process through
 * pipes. The master's host is cut off from the two others while importers work on both sides, and healed.
 * Guarantees: G3, G4, G10 (docs/guarantees.md).
 */
import { on, once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { CALL_NUMBER_LENGTH } from "@callnumber/protocol/codec";
import { type Bounds, DEFAULT_BOUNDS } from "../../../packages/coordinator/src/guard/clocks.js";
import { type Network, type NetworkHost, partitionUnavailable, startNetwork } from "../../redis/network-partition.js";
import { startSentinelRedis } from "../../redis/sentinel-redis.js";
import { sentinelStoreUrlAt, TESTER_LOGIN } from "../../redis/shipped-users.js";
import { CallNumberCheck } from "../call-number-check.js";
import { Control, type Counter } from "../control.js";
import { killed, startProgram } from "../coordinator-process.js";
import { type GeneratingEvent, GeneratingProcess, noteEvent } from "../generating-process.js";
import type { Load, Workplace } from "../load.js";
import { type Fault, faultOf } from "../run-fault.js";
import { BOUNDS, World, type WorldOptions } from "../world.js";

const COMMAND = join(import.meta.dirname, "../../../packages/cli/bin/callnumber.js");
const HOST_COUNT = 3;
/** The first master's host: two importers work there, the minority while it is cut off. */
const MASTER_HOST = 0;
const MINORITY = 2;
const IMPORTER_HOSTS = [MASTER_HOST, MASTER_HOST, 1, 2];
const CONTROL_HOSTS = [MASTER_HOST, 1];
/** Runs a second after a recovery: four importers at the pace below use less. */
const RATE = 16;
const PACE = { takeCount: 1_024, pauseMs: 20 };
const SPARE_RUNS = 6;

interface PartitionBounds {
  readonly bounds: Bounds;
  readonly preflightEveryMs: number;
  /** How long a node is silent before a Sentinel holds it to be down. */
  readonly downAfterMs: number;
  /** How long a client waits for a run before it reports why none comes. */
  readonly waitTimeoutMs: number;
}

/** With bounds of the suite, as short as Sentinels can be. */
export const SHORT_PARTITION = partition(8_000, {
  bounds: BOUNDS,
  preflightEveryMs: 250,
  downAfterMs: 1_000,
  waitTimeoutMs: 1_000,
});

/** With the bounds, the watching and the waiting of real use. */
export const PARTITION: readonly Fault[] = [
  partition(30_000, { bounds: DEFAULT_BOUNDS, preflightEveryMs: 60_000, downAfterMs: 5_000, waitTimeoutMs: 10_000 }),
];

/** Cut off at least for `cutMs`: until both sides have shown what they do. */
function partition(cutMs: number, options: PartitionBounds): Fault {
  const settings = {
    // The master of the first side is a replica of the second afterwards: the sides are not the same again.
    injectionCountMax: 1,
    expected: ["quorum_missing", "epoch_changed"],
    unavailable: partitionUnavailable,
  };
  return faultOf(
    `a network parted for ${cutMs / 1000} s, three Sentinels`,
    settings,
    ({ random }) => new PartitionedWorld({ ...options, random }),
    (world) => part(world, cutMs),
  );
}

async function part(world: PartitionedWorld, cutMs: number): Promise<void> {
  await world.network.cut(MASTER_HOST);
  const cutAt = performance.now();
  const importers = world.importers.map((importer) => importer.since());
  const [minority, majority] = [importers.slice(0, MINORITY), importers.slice(MINORITY)];
  await world.until("the majority's importers lease again", () =>
    majority.every(({ nextLeaseAfterMs }) => nextLeaseAfterMs() !== undefined),
  );
  await world.until("the minority's importers report why no run comes", () =>
    minority.every(({ rejection, nextLeaseAfterMs }) => (rejection() ?? nextLeaseAfterMs()) !== undefined),
  );
  await delay(Math.max(cutAt + cutMs - performance.now(), 0));
  for (const { name, nextLeaseAfterMs, callNumberCount } of minority) {
    if (nextLeaseAfterMs() !== undefined) world.noteProblem(`${name} got a run from the isolated side`);
    if (callNumberCount() === 0) world.noteProblem(`${name} did not go on with its spare runs`);
  }
  const lines = [...majority.map(summaryOfMajority), ...minority.map(summaryOfMinority)];
  console.log([`the master's host is cut off:`, ...lines].join("\n"));
  await world.network.heal(MASTER_HOST);
}

type Since = ReturnType<HostImporter["since"]>;

function summaryOfMajority({ name, nextLeaseAfterMs, leaseCount }: Since): string {
  const leasedAfter = seconds(nextLeaseAfterMs() ?? 0);
  return `  ${name}: leases again after ${leasedAfter}; ${leaseCount()} leases while the other host is away`;
}

function summaryOfMinority({ name, rejection, callNumberCount, wroteForMs }: Since): string {
  const seen = rejection();
  const outcome = seen === undefined ? "reports no error" : `reports ${seen.code}: ${seen.message}`;
  return `  ${name}: makes ${callNumberCount()} more call numbers in ${seconds(wroteForMs())}, then ${outcome}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

class PartitionedWorld extends World {
  /** Of use on the hosts only. */
  storeUrl = "";
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

  async begin(): Promise<void> {
    const { preflightEveryMs, downAfterMs } = this.#options;
    const network = await startNetwork(HOST_COUNT);
    this.#network = network;
    this.defer(() => network.end());
    const redis = await startSentinelRedis({ launch: network.launch, downAfterMs, config: { appendonly: "yes" } });
    this.defer(() => redis.end());
    this.storeUrl = sentinelStoreUrlAt(redis.sentinelHosts, redis.masterName);
    const storeId = await this.#init(network.hosts[MASTER_HOST] as NetworkHost);
    for (const [index, { spawn }] of network.hosts.entries()) {
      const checkpointDir = this.#checkpointOn(index);
      await this.addCoordinator({ storeUrl: this.storeUrl, preflightEveryMs, checkpointDir }, spawn);
    }
    const addresses = redis.sentinelHosts.split(",").map((address) => new URL(`redis://${address}`));
    const sentinels = addresses.map(({ hostname: host, port }) => ({ host, port }));
    this.#load.hosts = network.hosts;
    const counters = CONTROL_HOSTS.map((host) =>
      counterOn(network.hosts[host] as NetworkHost, { sentinels, name: redis.masterName, ...TESTER_LOGIN }),
    );
    await this.startLoad(storeId, new Control(...counters));
  }

  /** As an operator does, on one of the hosts. Resolves to the store id. */
  async #init(host: NetworkHost): Promise<string> {
    const store = ["--store", this.storeUrl, "--checkpoint-dir", this.#checkpointOn(MASTER_HOST)];
    const words = ["init", ...store, "--nodes", `${HOST_COUNT}`, "--rate", `${RATE}`, "--json"];
    const child = host.spawn(process.execPath, [COMMAND, ...words]);
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

/** A plain counter that is a process on its host. */
function counterOn({ spawn }: NetworkHost, settings: object): Counter {
  const { child } = startProgram("plain-counter-process.mjs", settings, spawn);
  const numbers = on(child, "message");
  return {
    next: async () => (await numbers.next()).value[0] as number,
    end: async () => {
      await numbers.return?.();
      await killed(child);
    },
  };
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
    return [...this.#alarms, ...this.#check.findings, ...this.importers.flatMap(({ failure }) => failure ?? [])];
  }

  get leaseCounts(): readonly number[] {
    return this.importers.map(({ leaseCount }) => leaseCount);
  }

  start(workplace: Workplace, expectedStoreId: string): void {
    const { waitTimeoutMs } = this;
    const { namespace } = workplace;
    this.importers = IMPORTER_HOSTS.map((host, index) => {
      const name = `importer ${index + 1} on host ${host + 1}`;
      const coordinator = workplace.coordinators()[host] as string;
      const given = { coordinator, namespace, expectedStoreId, waitTimeoutMs, holder: { name }, ...PACE };
      const onEvent = (event: GeneratingEvent) => {
        noteEvent(workplace, name, event);
        if (event.event === "alarm") this.#alarms.push(`${name} stopped permanently: ${event.message}`);
      };
      const listener = { onWritten: this.#check.reader(expectedStoreId, name), onEvent };
      const { spawn } = this.hosts[host] as NetworkHost;
      return new HostImporter({ ...given, spareRuns: SPARE_RUNS }, listener, spawn);
    });
  }

  noteControl(): void {}

  async stop(): Promise<void> {
    await Promise.all(this.importers.map((importer) => importer.stop()));
  }
}

type Rejection = Extract<GeneratingEvent, { readonly code: string }>;

/** An importer process on some host, and what became of it since a given moment. */
class HostImporter extends GeneratingProcess {
  /** What is counted from now on. */
  since() {
    const atMs = Date.now();
    const [eventsBefore, bytesBefore] = [this.events.length, this.byteCount];
    const eventsSince = () => this.events.slice(eventsBefore);
    const leases = () => eventsSince().filter(({ event }) => event === "lease");
    return {
      name: this.settings.holder.name,
      leaseCount: () => leases().length,
      callNumberCount: () => Math.floor((this.byteCount - bytesBefore) / CALL_NUMBER_LENGTH),
      /** Until when it wrote call numbers. */
      wroteForMs: () => Math.max(this.writtenAtMs - atMs, 0),
      /** The first call that its client rejected. */
      rejection: () => eventsSince().find((one): one is Rejection => one.event === "refused"),
      /** When it got a lease that it had requested since then: the first may have been in flight. */
      nextLeaseAfterMs: () => {
        const [, second] = leases();
        return second === undefined ? undefined : second.atMs - atMs;
      },
    };
  }
}
