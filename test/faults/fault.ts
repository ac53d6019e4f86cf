/** What a fault is to the suite: a row of the guard's table. */
import type { World } from "./world.js";

export interface Fault {
  /** As in the list of faults that the design names. */
  readonly number: number;
  readonly name: string;
  /** Lines of redis.conf. */
  readonly config: Record<string, string | string[]>;
  readonly nodeCount: number;
  /** For each node. */
  readonly coordinatorCount: number;
  /** Whether coordinators remember outside their memory. */
  readonly hasWitness: boolean;
  /** For a fault that only the first time finds what it needs. */
  readonly injectionCountMax: number;
  /** Codes that must have been seen at the end, by an importer or in a coordinator's log. */
  readonly expected: readonly string[];
  /**
   * Does the fault once, puts right what an operator would put right, and types what an operator would type. Importers work all the
   * while. When it resolves, leasing must be able to go on.
   */
  inject(world: World): Promise<void>;
}

const AOF = { appendonly: "yes", appendfsync: "everysec" };

/** A fault on a single server with an AOF, two coordinators and a witness, unless it says otherwise. */
export function fault(
  given: Pick<Fault, "number" | "name" | "inject"> & Partial<Omit<Fault, "number" | "name" | "inject">>,
): Fault {
  return {
    config: AOF,
    nodeCount: 1,
    coordinatorCount: 2,
    hasWitness: true,
    injectionCountMax: Number.POSITIVE_INFINITY,
    expected: [],
    ...given,
  };
}
