/**
 * Which node of a Cluster serves a key. All known nodes are asked at once; believed is one that has the majority of the masters
 * in sight, of those the one with the greatest epoch: a node that was cut off still shows the old masters.
 */
import { CoordinatorError } from "../errors.js";
import { type ClusterPlace, type Endpoint, type RedisLogin } from "./redis-address.js";
import { askEach, distinct, type Told } from "./redis-lookup.js";
import type { Chart, LookUp } from "./redis-route.js";
import { slotOf } from "./redis-slot.js";

/** One range of slots: who serves it, and who follows. */
interface Range {
  readonly first: number;
  readonly last: number;
  readonly master: Endpoint;
  readonly replicas: readonly Endpoint[];
}

interface View {
  readonly isWhole: boolean;
  readonly epoch: number;
  readonly ranges: readonly Range[];
}

/** @throws CoordinatorError `store_unavailable` when no node tells who serves what. */
export function clusterLookUp({ nodes }: ClusterPlace, login: RedisLogin): LookUp {
  let learnt: readonly Endpoint[] = [];
  return async () => {
    const { told, faults } = await askEach(distinct([...nodes, ...learnt]), login, [
      ["CLUSTER", "INFO"],
      ["CLUSTER", "SLOTS"],
    ]);
    const [best] = told.map(viewIn).sort(byTrust);
    if (best === undefined)
      throw new CoordinatorError("store_unavailable", `no node of the Cluster answers: ${faults.join("; ")}`);
    learnt = best.ranges.flatMap(({ master, replicas }) => [master, ...replicas]);
    return chartOf(best);
  };
}

function byTrust(one: View, other: View): number {
  return Number(other.isWhole) - Number(one.isWhole) || other.epoch - one.epoch;
}

function viewIn({ from, answers: [info, slots] }: Told): View {
  const text = String(info);
  const endpointIn = ([host, port]: readonly unknown[]): Endpoint => ({
    // A node that does not know its own name leaves it to whoever has reached it.
    host: typeof host === "string" && host !== "" && host !== "?" ? host : from.host,
    port: Number(port),
  });
  const ranges = (slots as [number, number, ...unknown[][]][]).map(([first, last, master = [], ...replicas]) => ({
    first,
    last,
    master: endpointIn(master),
    replicas: replicas.map(endpointIn),
  }));
  return {
    isWhole: /^cluster_state:ok/m.test(text),
    epoch: Number(/^cluster_current_epoch:(\d+)/m.exec(text)?.[1] ?? 0),
    ranges,
  };
}

function chartOf({ ranges }: View): Chart {
  return {
    endpoints: distinct(ranges.map(({ master }) => master)),
    endpointOf: (key) => {
      const slot = slotOf(key);
      const range = ranges.find(({ first, last }) => first <= slot && slot <= last);
      if (range !== undefined) return range.master;
      throw new CoordinatorError("store_unavailable", `no node of the Cluster serves slot ${slot}, where ${key} lies`);
    },
  };
}
