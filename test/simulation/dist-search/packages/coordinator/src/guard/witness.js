/** Something was remembered and can't be read any more: the store is to be doubted. */
export const DAMAGED = "damaged";
/** For a coordinator that was given no place to remember in. */
export const NO_WITNESS = {
    read: () => undefined,
    note: () => { },
    close: () => { },
};
/** The greater of what is known of one store; of two stores, the first. */
export function merged(one, other) {
    if (one.storeId !== other.storeId)
        return one;
    return {
        storeId: one.storeId,
        ledgerId: Math.max(one.ledgerId, other.ledgerId),
        generation: Math.max(one.generation, other.generation),
        nodeCount: other.generation > one.generation ? other.nodeCount : one.nodeCount,
    };
}
//# sourceMappingURL=witness.js.map