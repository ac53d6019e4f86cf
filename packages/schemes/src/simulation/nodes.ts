/** The simulated machines, each with one importer on it, and the central counters that they share. */
import { capacityOf, type Field, type NodeSource, nodeFields } from "../fields.js";
import type { Clock, GenerateContext, Memory, NodeIdentity } from "../scheme.js";

/** The day of the examples in the documents that describe the schemes; after every epoch. */
const START_MS = Date.UTC(2018, 5, 9, 10);
/** Lower ones are those of the system. */
const FIRST_PID = 1_000;
/** As many as 16 bits can distinguish. */
const PID_COUNT = 2 ** 16 - FIRST_PID;

export class SimulatedNode {
  /** True time since the start, which no node knows. */
  trueMs = 0;
  /** Clock milliseconds in one of true time. */
  clockRate = 1;
  /** How far the clock was set forward; negative where it was set back. */
  clockStepMs = 0;
  /** The last reading of the clock: whole milliseconds since 1970. */
  readMs = Number.NaN;
  /** Counts the processes of this node; each starts with an empty memory. */
  process = 0;
  /** Counts its disks. */
  disks = 0;
  /** The last value that the central counter returned to this node, and the number of that request among all. */
  counted: { readonly value: bigint; readonly request: number } | undefined;
  memory: Memory = new Map();
  disk: Memory = new Map();
  readonly clock: Clock = {
    nowMs: () => {
      this.readMs = Math.floor(START_MS + this.trueMs * this.clockRate + this.clockStepMs);
      return this.readMs;
    },
  };

  constructor(
    readonly index: number,
    public identity: NodeIdentity,
  ) {}

  /** The memory is lost, the disk stays. `pid` is that of the new process. */
  restart({ tookMs, pid }: { readonly tookMs: number; readonly pid: number }): void {
    this.trueMs += tookMs;
    this.process++;
    this.memory = new Map();
    this.identity = { ...this.identity, pid };
  }

  loseDisk(): void {
    this.disks++;
    this.disk = new Map();
  }
}

export type SimulatedNodes = readonly [SimulatedNode, SimulatedNode, ...SimulatedNode[]];

/**
 * Creates one node for each MAC address, as different as the fields allow: where a field has fewer values than there are nodes, it repeats them.
 * @param macs at least two.
 */
export function createNodes(fields: readonly Field[], macs: readonly string[], newPid: () => number): SimulatedNodes {
  const nodes = macs.map((mac, index) => {
    const fitting = (from: NodeSource) => Number(BigInt(index) % capacityOf(...nodeFields(fields, from)));
    const identity = { given: fitting("given"), server: fitting("server"), pid: newPid(), macs: [mac] };
    return new SimulatedNode(index, identity);
  });
  return nodes as readonly SimulatedNode[] as SimulatedNodes;
}

/** Returns process ids, each of them new until all are used. */
export function pidGenerator(): () => number {
  let count = 0;
  return () => FIRST_PID + (count++ % PID_COUNT);
}

/** Central counters without any guard: a restore sets them back to the backup. Callnumber's guard is not simulated here. */
export class SimulatedCounters {
  readonly #values = new Map<number, bigint>();
  #backup: ReadonlyMap<number, bigint> = new Map();
  #requestCount = 0;

  /** The counter of this node: there is one for each server where a scheme has servers that count. */
  counterFor(node: SimulatedNode, perServer: boolean): GenerateContext["counter"] {
    return {
      next: () => {
        const server = perServer ? node.identity.server : 0;
        const value = (this.#values.get(server) ?? 0n) + 1n;
        this.#values.set(server, value);
        node.counted = { value, request: this.#requestCount++ };
        return value;
      },
    };
  }

  backUp(): void {
    this.#backup = new Map(this.#values);
  }

  restore(): void {
    this.#values.clear();
    for (const [server, value] of this.#backup) this.#values.set(server, value);
  }
}
