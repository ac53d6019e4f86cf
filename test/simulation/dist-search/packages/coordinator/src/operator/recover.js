/**
 * Recover: what an operator does when the store can't be believed any more, or is gone. First looks and plans, changes nothing;
 * then puts the record onto the clock line, above everything that was ever leased, and leaves the rest to a coordinator, which
 * claims, waits for the quorum and confirms, as after any doubt.
 */
import { randomBytes } from "node:crypto";
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { DEFAULT_BOUNDS } from "../guard/bounds.js";
import { mustCount } from "../guard/judge.js";
import { lineAt, whenLineReaches } from "../guard/line.js";
import { DAMAGED } from "../guard/witness.js";
import { parseStoreId } from "../store-id.js";
/**
 * Looks at what is there, for `watchMs`, and says what `recoverNamespace` would do. Changes nothing.
 * @throws CoordinatorError `coordinator_still_leases`; `store_replaced` when record, witness and the given store id disagree;
 *   `namespace_not_initialised` when nothing tells which store it was.
 */
export async function planRecovery(options) {
    const { store, namespace, witness, now = Date.now, bounds = DEFAULT_BOUNDS, watchMs, pause } = options;
    const first = await found(store, namespace);
    await pause(watchMs);
    const second = await found(store, namespace);
    mustBeAtRest(namespace, first.record, second.record);
    const { record, fault } = second;
    const remembered = witness.read();
    const witnessed = remembered === DAMAGED ? undefined : remembered;
    const storeId = theOneStoreId(namespace, record?.storeId, witnessed?.storeId, options.storeId);
    const id = parseStoreId(storeId);
    if (id === undefined)
        throw new TypeError(`not a store id: ${JSON.stringify(storeId)}`);
    const floors = [
        ...(record === undefined
            ? []
            : [{ from: "the record", ledgerId: ledgerIdOf(record.version, record.highWaterMark) }]),
        ...(witnessed === undefined ? [] : [{ from: "the witness", ledgerId: witnessed.ledgerId }]),
        ...options.floors,
    ];
    const floor = greatest(floors);
    const { version, run } = runOfLedgerId(floor);
    const nowMs = now();
    const target = lineAt(id, version, nowMs + 2 * bounds.epsMs);
    return {
        namespace,
        storeId,
        found: record,
        fault,
        witnessed,
        floors,
        target,
        skippedRunCount: Math.max(target - run, 0),
        nextRunInMs: Math.max(whenLineReaches(id, version, target + 1) - nowMs, 0),
        nodeCount: options.nodeCount ?? record?.nodeCount ?? witnessed?.nodeCount ?? 1,
    };
}
/**
 * Does what was planned.
 * @throws CoordinatorError all refusals of GUARD's confirm, `store_moved`, `store_replaced`, `quorum_missing`.
 */
export async function recoverNamespace(options, plan) {
    const { store, namespace, witness, isClockChecked } = options;
    const command = {
        step: "recover",
        storeId: plan.storeId,
        nonce: randomBytes(12).toString("base64url"),
        isSilenceAccepted: isClockChecked,
        floor: greatest(plan.floors),
        generationMin: plan.witnessed?.generation ?? 0,
        nodeCount: plan.nodeCount,
        receiptKey: randomBytes(32).toString("hex"),
    };
    const outcome = await store.step(namespace, command);
    mustCount(outcome, command);
    const { storeId, version, highWaterMark, generation, nodeCount } = outcome.after;
    witness.note({ storeId, ledgerId: ledgerIdOf(version, highWaterMark), generation, nodeCount });
    return outcome;
}
async function found(store, namespace) {
    try {
        return { record: await store.readNamespace(namespace), fault: undefined };
    }
    catch (error) {
        if (!(error instanceof CoordinatorError) || !RECOVERABLE.has(error.code))
            throw error;
        return { record: undefined, fault: error };
    }
}
const RECOVERABLE = new Set(["namespace_not_initialised", "store_corrupt"]);
function mustBeAtRest(namespace, before, after) {
    if (before === undefined || after === undefined)
        return;
    const hasMoved = before.changedAtMs !== after.changedAtMs ||
        before.highWaterMark !== after.highWaterMark ||
        before.generation !== after.generation;
    if (!hasMoved)
        return;
    throw new CoordinatorError("coordinator_still_leases", `a coordinator still works on namespace "${namespace}" of this store (its record changed while it was looked at): nothing is to be ` +
        "recovered while leases succeed. Stop every coordinator of it first");
}
function theOneStoreId(namespace, recorded, witnessed, given) {
    const named = [recorded, witnessed, given].filter((storeId) => storeId !== undefined);
    const [storeId] = named;
    if (storeId === undefined) {
        throw new CoordinatorError("namespace_not_initialised", `neither the store nor the witness folder knows which store namespace "${namespace}" was. Give the id that was kept beside the ` +
            "archive: --store-id");
    }
    if (new Set(named).size === 1)
        return storeId;
    throw new CoordinatorError("store_replaced", `these are different stores: ${told("the record", recorded)}${told("the witness", witnessed)}${told("--store-id", given)}` +
        `nothing was changed. Bring the right store back; or, when namespace "${namespace}" here is a stray one, remove it first`);
}
function told(name, storeId) {
    return storeId === undefined ? "" : `${name} says ${storeId}; `;
}
function greatest(floors) {
    return Math.max(0, ...floors.map(({ ledgerId }) => ledgerId));
}
//# sourceMappingURL=recover.js.map