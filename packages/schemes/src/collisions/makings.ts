/**
 * Who made how many numbers, when and as whom, seen from outside: from the clocks, counters and processes of the simulation, never from a
 * number. The theory computes from this, so that a fault of a scheme can't hide in it.
 */
import type { Field, NodeSource, SequenceScope } from "../field.js";
import type { NodeIdentity } from "../mint-context.js";
import { nodeFromMacs } from "../node-from-macs.js";
import type { Scheme } from "../scheme.js";
import { nodeCapacity } from "./crew.js";
import type { SimulatedNode } from "./simulated-node.js";

/** What decides between two numbers of one cell. */
export type Rule =
  /** Each maker counts from the same first value, so where two have counted, the shorter count is made twice. */
  | "counted alike"
  /** Each maker counts from a value of its own, drawn from a ring of so many. */
  | "counted from anywhere"
  | "drawn";

export interface Makings {
  readonly rule: Rule;
  readonly cells: ReadonlyMap<string, Makers>;
  /** One number was made by this node, just now. */
  add(node: SimulatedNode): void;
}

/** How many numbers each maker made in one cell. Most cells have one maker, and there are as many cells as numbers: no map for each. */
class Makers {
  readonly #first: string;
  #madeByFirst = 1;
  #others: Map<string, number> | undefined;

  constructor(first: string) {
    this.#first = first;
  }

  add(maker: string): void {
    if (maker === this.#first) {
      this.#madeByFirst++;
      return;
    }
    this.#others ??= new Map();
    this.#others.set(maker, (this.#others.get(maker) ?? 0) + 1);
  }

  /** Of each maker. */
  counts(): readonly number[] {
    return this.#others === undefined ? [this.#madeByFirst] : [this.#madeByFirst, ...this.#others.values()];
  }
}

/** A cell is what all its numbers have in common by what was outside; a maker, whatever counts by itself. */
interface Places {
  readonly rule: Rule;
  readonly cellOf: (seen: Seen) => string;
  readonly makerOf: (seen: Seen) => string;
}

interface Seen {
  readonly node: SimulatedNode;
  /** What the node fields of its numbers say. */
  readonly identity: string;
  /** Of the clock of its numbers. */
  readonly unit: number;
}

export function makingsOf({ fields }: Scheme): Makings {
  const { rule, cellOf, makerOf } = PLACES[countedBy(fields)];
  const unitOf = unitReader(fields);
  const identities = new Map<NodeIdentity, string>();
  const cells = new Map<string, Makers>();
  return {
    rule,
    cells,
    add: (node) => {
      const identity = identities.get(node.identity) ?? identityIn(fields, node.identity);
      identities.set(node.identity, identity);
      const seen = { node, identity, unit: unitOf(node) };
      const cell = cellOf(seen);
      const maker = makerOf(seen);
      const makers = cells.get(cell);
      if (makers === undefined) cells.set(cell, new Makers(maker));
      else makers.add(maker);
    },
  };
}

type CountedBy = Exclude<SequenceScope, "run"> | "counter" | "nobody";

const ofUnit: Places["cellOf"] = ({ identity, unit }) => `${identity} ${unit}`;
const ofProcess: Places["makerOf"] = ({ node: { index, process } }) => `${index} ${process}`;

const PLACES: Readonly<Record<CountedBy, Places>> = {
  "clock unit": { rule: "counted alike", cellOf: ofUnit, makerOf: ofProcess },
  process: { rule: "counted from anywhere", cellOf: ofUnit, makerOf: ofProcess },
  kept: {
    rule: "counted alike",
    cellOf: ({ identity }) => identity,
    makerOf: ({ node: { index, diskCount } }) => `${index} ${diskCount}`,
  },
  /** Whoever has a number or a run of the counter counts alike in it, if it is the same; each asking is another. */
  counter: {
    rule: "counted alike",
    cellOf: ({ identity, node: { answer } }) => `${identity} ${answer?.value}`,
    makerOf: ({ node: { answer } }) => `${answer?.asking}`,
  },
  nobody: { rule: "drawn", cellOf: ofUnit, makerOf: () => "chance" },
};

function countedBy(fields: readonly Field[]): CountedBy {
  if (fields.some(({ source }) => source.kind === "counter")) return "counter";
  const within = fields.map(({ source }) => (source.kind === "sequence" ? source.within : undefined));
  return (within.find((scope) => scope !== undefined) ?? "nobody") as CountedBy;
}

function unitReader(fields: readonly Field[]): (node: SimulatedNode) => number {
  for (const { source } of fields) {
    if (source.kind === "clock") return ({ readMs }) => Math.floor((readMs - source.epochMs) / source.unitMs);
  }
  return () => 0;
}

function identityIn(fields: readonly Field[], { given, server, pid, macs }: NodeIdentity): string {
  const known: Readonly<Record<NodeSource, () => bigint>> = {
    given: () => BigInt(given),
    server: () => BigInt(server),
    pid: () => BigInt(pid),
    "mac hash": () => nodeFromMacs(macs),
  };
  const sources = new Set(fields.flatMap(({ source }) => (source.kind === "node" ? [source.from] : [])));
  return [...sources].map((from) => known[from]() % nodeCapacity(fields, from)).join("/");
}
