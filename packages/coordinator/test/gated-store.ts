/** A store in memory whose leases wait: for tests of what happens meanwhile. */
import type { Outcome, StepCommand } from "../src/store.js";
import { MemoryStore } from "../src/stores/memory-store.js";

/** Leases wait until they are let go. */
export class GatedStore extends MemoryStore {
  gate: Promise<unknown> = Promise.resolve();
  askedCount = 0;
  override async step(namespace: string, command: StepCommand): Promise<Outcome> {
    if (command.step === "lease") {
      this.askedCount++;
      await this.gate;
    }
    return super.step(namespace, command);
  }
}

export function opensGate(store: GatedStore): () => void {
  let open = () => {};
  store.gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return open;
}
