/** What the simulation must catch: a moved store keeps its id, and with it version and clock line. */
import type { Store } from "../product.js";
import type { Variant } from "./variant.js";

/** A seal that the old store forgets is all that keeps the two apart; then both lease below one line. */
export const MOVE_KEEPS_ID: Variant = {
  name: "move-keeps-id",
  fault: "a moved store keeps its store id and its version",
  breaks: "no run is leased twice",
  focus: {
    kinds: ["lease", "wait", "move", "leaseAtNewPlace", "backUp", "restore", "restartCoordinator"],
    setting: { serverCount: 1, hostCount: 1, isOnLine: true, firstRun: 1, witness: "own" },
  },
  newPlaceOf(store, oldStoreId) {
    return new Proxy(store, {
      get(_, name: keyof Store) {
        if (name === "step") return stepAs(store, oldStoreId);
        const value: unknown = store[name];
        return typeof value === "function" ? (value.bind(store) as unknown) : value;
      },
    });
  },
};

/** Makes the record under the old id, and says that it did as it was asked. */
function stepAs(store: Store, oldStoreId: () => string): Store["step"] {
  return async (namespace, command) => {
    if (command.step !== "recover") return await store.step(namespace, command);
    const outcome = await store.step(namespace, { ...command, storeId: oldStoreId() });
    return { ...outcome, after: { ...outcome.after, storeId: command.storeId } };
  };
}
