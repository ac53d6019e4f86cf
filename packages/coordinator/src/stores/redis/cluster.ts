/**
 * Which node of a Cluster serves a key. All known nodes are asked at once; believed is one that has the majority of the masters
 * in sight, of those the one with the greatest epoch: a node that was cut off still shows the old masters.
 */
import { CoordinatorError } from "../../errors.js";
import { type ClusterPlace, type Endpoint, endpointText, type RedisLogin } from "./address.js";
import { askEach, distinct, endpointTold, type Told } from "./lookup.js";
import type { Chart, LookUp } from "./route.js";
import { slotOf } from "./slot.js";

/** Of those that were learnt: all are asked at once, and one that knows is enough. */
const LEARNT_COUNT_MAX = 64;

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
    const views = told.map((one) => viewIn(one) ?? nonsenseOf(one));
    const [best] = views.filter((view) => typeof view !== "string").sort(byTrust);
    if (best === undefined) {
      const reasons = [...faults, ...views.filter((view) => typeof view === "string")];
      throw new CoordinatorError("store_unavailable", `no node of the Cluster answers: ${reasons.join("; ")}`);
    }
    learnt = nodesIn(best.ranges).slice(0, LEARNT_COUNT_MAX);
    return chartOf(best);
  };
}

function byTrust(one: View, other: View): number {
  return Number(other.isWhole) - Number(one.isWhole) || other.epoch - one.epoch;
}

function nonsenseOf({ from }: Told): string {
  return `Redis at ${endpointText(from)} answers CLUSTER SLOTS with what no Cluster has`;
}

/** Undefined when it is none: a node that tells nonsense has told nothing. */
function viewIn({ from, answers: [info, slots] }: Told): View | undefined {
  if (typeof info !== "string" || !Array.isArray(slots)) return undefined;
  const ranges = slots.map((told) => rangeIn(told, from)).filter((range) => range !== undefined);
  if (ranges.length < slots.length) return undefined;
  return {
    isWhole: /^cluster_state:ok/m.test(info),
    epoch: Number(/^cluster_current_epoch:(\d+)/m.exec(info)?.[1] ?? 0),
    ranges,
  };
}

function rangeIn(told: unknown, from: Endpoint): Range | undefined {
  if (!Array.isArray(told)) return undefined;
  const [first, last, ...nodes] = told as readonly unknown[];
  const [master, ...replicas] = nodes.map((node) => nodeIn(node, from)).filter((node) => node !== undefined);
  if (typeof first !== "number" || typeof last !== "number") return undefined;
  if (master === undefined || replicas.length + 1 < nodes.length) return undefined;
  return { first, last, master, replicas };
}

function nodeIn(told: unknown, from: Endpoint): Endpoint | undefined {
  if (!Array.isArray(told)) return undefined;
  const [host, port] = told as readonly unknown[];
  // A node that does not know its own name leaves it to whoever has reached it.
  const isUnnamed = host === null || host === "" || host === "?";
  const endpoint = endpointTold(isUnnamed ? "unnamed" : host, port);
  return endpoint && { ...endpoint, host: isUnnamed ? from.host : endpoint.host };
}

/** Each once; those that serve before those that follow. */
function nodesIn(ranges: readonly Range[]): readonly Endpoint[] {
  return distinct([...ranges.map(({ master }) => master), ...ranges.flatMap(({ replicas }) => replicas)]);
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
