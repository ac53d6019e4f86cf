/** A store in memory that counts what is asked of it, and whose responses can wait: for tests of what happens meanwhile. */

import type { Applied, Change, Expected, Observed } from "../src/guard/step-store.js";
import { MemoryStore } from "../src/stores/memory.js";

export class GatedStore extends MemoryStore {
  /** Leases wait for it. */
  gate: Promise<unknown> = Promise.resolve();
  leaseCount = 0;
  override async apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed> {
    if (change.leases.length > 0) {
      this.leaseCount++;
      await this.gate;
    }
    return super.apply(namespace, expected, change);
  }

  /** Leases wait from now on, until the returned function is called. */
  closeGate(): () => void {
    const { promise, resolve } = newGate();
    this.gate = promise;
    return resolve;
  }
}

/** Makes a method of a store wait, and counts its calls. */
export function gatedMethod(store: MemoryStore, name: "listNamespaces" | "readNamespace") {
  const { promise, resolve: open } = newGate();
  const method = store[name].bind(store) as (namespace: string) => Promise<never>;
  const calls = { count: 0, open };
  store[name] = async (namespace?: string) => {
    calls.count++;
    await promise;
    return await method(namespace as string);
  };
  return calls;
}

function newGate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** A store that notes the names of the methods that are called. */
export function notingStore(calls: string[], store = new MemoryStore()): MemoryStore {
  return new Proxy(store, {
    get(own, name) {
      const value: unknown = Reflect.get(own, name, own);
      if (typeof value !== "function") return value;
      return (...parameters: readonly unknown[]) => {
        calls.push(String(name));
        return value.apply(own, parameters);
      };
    },
  });
}
