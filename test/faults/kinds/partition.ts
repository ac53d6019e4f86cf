/**
 * A real partition: the master's host is cut off from the two others while importers work on both sides, and healed.
 * Guarantees: G3, G4, G10 (docs/guarantees.md).
 */
import { setTimeout as delay } from "node:timers/promises";
import { DEFAULT_BOUNDS } from "../../../packages/coordinator/src/guard/bounds.js";
import { partitionUnavailable } from "../../redis/network-partition.js";
import {
  type HostImporter,
  MASTER_HOST,
  type PartitionBounds,
  PartitionedWorld,
  type Since,
} from "../partitioned-world.js";
import { type Fault, type FaultOptions, faultOf } from "../run-fault.js";
import { BOUNDS } from "../world.js";

const MINORITY = 2;

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
  const name = `a network parted for ${cutMs / 1000} s, three Sentinels`;
  const newWorld = ({ random }: FaultOptions) => new PartitionedWorld({ ...options, random });
  return faultOf(name, settings, newWorld, (world) => part(world, cutMs));
}

interface Watched {
  readonly importer: HostImporter;
  readonly since: Since;
}

async function part(world: PartitionedWorld, cutMs: number): Promise<void> {
  await world.network.cut(MASTER_HOST);
  const cutAt = performance.now();
  const watched = world.importers.map((importer) => ({ importer, since: importer.since() }));
  const [minority, majority] = [watched.slice(0, MINORITY), watched.slice(MINORITY)];
  await world.until("the majority's importers lease again", () =>
    majority.every(({ since }) => since.nextLeaseAfterMs() !== undefined),
  );
  await world.until("the minority's importers report why no run comes", () =>
    minority.every(({ since }) => since.rejection() !== undefined || since.nextLeaseAfterMs() !== undefined),
  );
  await delay(Math.max(cutAt + cutMs - performance.now(), 0));
  for (const { importer, since } of minority) {
    if (since.nextLeaseAfterMs() !== undefined) world.noteProblem(`${importer.name} got a run from the isolated side`);
    if (since.callNumberCount() === 0) world.noteProblem(`${importer.name} did not go on with its spare runs`);
  }
  console.log(
    [`the master's host is cut off:`, ...majority.map(summaryOfMajority), ...minority.map(summaryOfMinority)].join(
      "\n",
    ),
  );
  await world.network.heal(MASTER_HOST);
}

function summaryOfMajority({ importer, since }: Watched): string {
  const leasedAfter = seconds(since.nextLeaseAfterMs() ?? 0);
  return `  ${importer.name}: leases again after ${leasedAfter}; ${since.leaseCount()} leases while the other host is away`;
}

function summaryOfMinority({ importer, since }: Watched): string {
  const rejection = since.rejection();
  const outcome = rejection === undefined ? "reports no error" : `reports ${rejection.code}: ${rejection.message}`;
  const made = `${since.callNumberCount()} more call numbers in ${seconds(since.wroteForMs())}`;
  return `  ${importer.name}: makes ${made}, then ${outcome}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
