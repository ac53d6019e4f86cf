/** The nodes of a world before anything is wrong with them: as different from each other as the fields of the scheme allow. */
import { capacityOf, type Field, type NodeSource } from "../field.js";
import type { Scheme } from "../scheme.js";
import { SimulatedNode } from "./simulated-node.js";

/** 2018-06-09 10:00 UTC, the day of which the documents that describe the schemes make their examples; after every epoch. */
const BEGAN_MS = Date.UTC(2018, 5, 9, 10);
/** The first process id; those of the system come before. */
const FIRST_PID = 1_000;
/** As many as 16 bits can tell apart. */
const PID_COUNT = 2 ** 16 - FIRST_PID;

/** One node for each MAC address. Where a field has fewer values than there are nodes, its values are given again. */
export function crewOf({ fields }: Scheme, macs: readonly string[], freshPid: () => number): readonly SimulatedNode[] {
  return macs.map((mac, index) => {
    const fitting = (from: NodeSource): number => Number(BigInt(index) % nodeCapacity(fields, from));
    const identity = { given: fitting("given"), server: fitting("server"), pid: freshPid(), macs: [mac] };
    return new SimulatedNode(index, identity, BEGAN_MS);
  });
}

/** Process ids, each of them new until there is no other. */
export function freshPids(): () => number {
  let count = 0;
  return () => FIRST_PID + (count++ % PID_COUNT);
}

/** How many nodes the fields that are filled with this can tell apart; fields with one source share its digits. 1 where no field is. */
export function nodeCapacity(fields: readonly Field[], from: NodeSource): bigint {
  return fields
    .filter(({ source }) => source.kind === "node" && source.from === from)
    .reduce((product, field) => product * capacityOf(field), 1n);
}
