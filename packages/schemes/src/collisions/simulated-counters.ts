/** Central counters without any guard: each counts, is saved, and is set back to what was saved. What Callnumber's guard does is not here. */
import type { CentralCounter } from "../mint-context.js";
import type { SimulatedNode } from "./simulated-node.js";

export class SimulatedCounters {
  readonly #marks = new Map<number, bigint>();
  #saved: ReadonlyMap<number, bigint> = new Map();
  #askingCount = 0;

  /** The counter that this node asks: there is one for each server, where a scheme has servers that count. */
  counterFor(node: SimulatedNode, perServer: boolean): CentralCounter {
    return {
      next: () => {
        const server = perServer ? node.identity.server : 0;
        const value = (this.#marks.get(server) ?? 0n) + 1n;
        this.#marks.set(server, value);
        node.answer = { value, asking: this.#askingCount++ };
        return value;
      },
    };
  }

  backUp(): void {
    this.#saved = new Map(this.#marks);
  }

  restore(): void {
    this.#marks.clear();
    for (const [server, mark] of this.#saved) this.#marks.set(server, mark);
  }
}
