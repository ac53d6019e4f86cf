/** The guard of a namespace for a verb that an operator types: the same judgement as in a coordinator, without its timers. */
import { setTimeout as delay } from "node:timers/promises";
import { DEFAULT_BOUNDS } from "../guard/bounds.js";
import { NamespaceGuard } from "../guard/namespace-guard.js";
import { SILENT_LOG } from "../log.js";
/** @throws CoordinatorError as `NamespaceGuard.open`. */
export function openGuard({ store, namespace, witness, log = SILENT_LOG, now = Date.now, bounds = DEFAULT_BOUNDS, }) {
    const pause = async (pauseMs) => void (await delay(pauseMs));
    return NamespaceGuard.open({ store, namespace, witness, log, now, bounds, pause, random: Math.random });
}
//# sourceMappingURL=open-guard.js.map