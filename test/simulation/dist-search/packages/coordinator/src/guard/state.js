/** Doubts about the store's memory: a coordinator settles them by itself, by claim and confirm. */
const DOUBTS = new Set([
    "store_epoch_changed",
    "store_claimed",
    "store_silent",
    "store_went_back",
    "store_generation_stale",
]);
/** Refusals that nothing but an operator ends. */
const FENCES = new Set([
    "store_sealed",
    "store_moved",
    "store_forked",
    "store_replaced",
    "store_emptied",
    "operator_needed",
    "store_corrupt",
    "store_unknown_schema",
    "store_epoch_unreadable",
    "store_evicts",
    "store_too_old",
    "store_copied",
    "store_locked",
    "run_space_exhausted",
]);
export function isDoubt(error) {
    return DOUBTS.has(error.code);
}
export function openSince(sinceMs) {
    return { state: "open", code: null, sinceMs, explanation: "runs are leased" };
}
/** The state after a refusal; the same state keeps its beginning. */
export function stateAfter(error, before, nowMs) {
    const { code, message } = error;
    // Said only by a store against which nothing else stands: the doubt, or the fence, is over.
    if (code === "line_reached")
        return before.state === "open" ? before : openSince(nowMs);
    const state = FENCES.has(code) ? "fenced" : "in_doubt";
    const sinceMs = before.code === code ? before.sinceMs : nowMs;
    return { state, code, sinceMs, explanation: message };
}
//# sourceMappingURL=state.js.map