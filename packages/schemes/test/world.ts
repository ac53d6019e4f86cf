/** An outside for minting, all of it in the hands of the test. */
import type { Memory, MintContext, Minted, NodeIdentity, Scheme } from "../src/index.js";

export class MapMemory implements Memory {
  readonly kept = new Map<string, bigint>();

  get(name: string): bigint | undefined {
    return this.kept.get(name);
  }

  set(name: string, value: bigint): void {
    this.kept.set(name, value);
  }
}

/** One whose so many-th writing fails, and no other. */
export function memoryFailingAt(failing: number): MapMemory {
  const memory = new MapMemory();
  const set = memory.set.bind(memory);
  let writes = 0;
  memory.set = (name, value) => {
    if (++writes === failing) throw new Error("not written");
    set(name, value);
  };
  return memory;
}

interface Given extends Partial<Omit<MintContext, "node" | "clock">> {
  readonly nowMs?: number;
  readonly node?: Partial<NodeIdentity>;
}

export interface World extends MintContext {
  readonly clock: { at: number; nowMs(): number };
  readonly memory: MapMemory;
  readonly disk: MapMemory;
}

/** A clock that stands until it is set, draws that answer 0, a counter from 1 on, unless given otherwise. */
export function world({ nowMs = 1_600_000_000_000, node = {}, ...given }: Given = {}): World {
  let counted = 0n;
  const clock = { at: nowMs, nowMs: () => clock.at };
  return {
    clock,
    random: { below: () => 0 },
    counter: { next: () => ++counted },
    memory: new MapMemory(),
    disk: new MapMemory(),
    node: { given: 1, server: 1, pid: 4_711, macs: [], ...node },
    ...given,
  } as World;
}

/** Draws that answer these, one after the other. */
export function draws(values: readonly number[]): MintContext["random"] {
  const left = [...values];
  return {
    below: (bound) => {
      const value = left.shift();
      if (value === undefined || value >= bound) throw new Error(`${value} was drawn below ${bound}`);
      return value;
    },
  };
}

/** The text of one step, which must mint. */
export function minted(scheme: Scheme, context: MintContext): string {
  return mintedStep(scheme.mint(context)).text;
}

export function mintedStep(step: Minted): Extract<Minted, { outcome: "minted" }> {
  if (step.outcome === "minted") return step;
  throw new Error(`it waits until ${step.untilMs}`);
}
