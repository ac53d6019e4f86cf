/**
 * Namespaces and coordinators for benchmarks. The namespaces look as if they had been created long ago: the load of a benchmark
 * would reach the run ceiling of a new one.
 */
import { Coordinator, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { onTestFinished } from "vitest";
import { initBackdated } from "../test/backdated.js";

export const NAMESPACE = "bench";

/** Creates the namespace in the store, and the store where there is none. */
export async function createNamespace(storeUrl: string): Promise<void> {
  const { store } = await openStore(parseStoreUrl(storeUrl), { create: true });
  await initBackdated(store, NAMESPACE);
  await store.close();
}

/** Opens a coordinator in this process, on a new namespace; `create`: in a new store. It ends with the test. */
export async function openCoordinator(
  storeUrl: string,
  { nodeCount, create = false }: { readonly nodeCount: number; readonly create?: boolean },
): Promise<Coordinator> {
  const { store } = await openStore(parseStoreUrl(storeUrl), { create });
  onTestFinished(() => store.close());
  await initBackdated(store, NAMESPACE, { nodeCount });
  return new Coordinator({ store, name: "bench" });
}
