/** A store in memory whose leases or looks wait: for tests of what happens meanwhile. */

import { MemoryStore } from "../src/stores/memory.js";
import type { Outcome, StepCommand } from "../src/stores/store.js";

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
  const { opened, open } = closedGate();
  store.gate = opened;
  return open;
}

/** Whoever looks for namespaces waits until it is let go. */
export function gatedLooks(store: MemoryStore): { readonly count: number; readonly open: () => void } {
  const { opened, open } = closedGate();
  const looks = { count: 0, open };
  store.listNamespaces = async () => {
    looks.count++;
    await opened;
    return ["main"];
  };
  return looks;
}

export function closedGate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
