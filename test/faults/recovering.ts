/** What an operator types when a store can't be believed any more: the operations behind `callnumber recover`. */
import { setTimeout as delay } from "node:timers/promises";
import { openWitness } from "../../packages/coordinator/src/guard/witness-folder.js";
import { planRecovery, recoverNamespace } from "../../packages/coordinator/src/operator/recover.js";
import { parseStoreUrl, placeOf } from "../../packages/coordinator/src/stores/store-url.js";
import { BOUNDS, NAMESPACE, type World } from "./world.js";

/** @throws CoordinatorError as the verb does. */
export async function recover(world: World, server = world.server): Promise<void> {
  await world.onStore(async (store) => {
    const place = placeOf(parseStoreUrl(world.storeUrl(server)));
    const witness = openWitness({ folder: world.witnessFolder, place, namespace: NAMESPACE });
    const options = {
      store,
      namespace: NAMESPACE,
      witness,
      bounds: BOUNDS,
      storeId: world.storeId,
      floors: [],
      nodeCount: undefined,
      isClockChecked: false,
      watchMs: 3 * BOUNDS.touchEveryMs,
      pause: async (pauseMs: number) => void (await delay(pauseMs)),
    };
    await recoverNamespace(options, await planRecovery(options));
    witness.close();
  }, server);
}
