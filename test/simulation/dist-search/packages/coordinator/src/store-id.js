/**
 * The store id, `<uuid>.<first run>.<instant of init, ms>.<rate>`: made once for each namespace by `init`, never changed.
 * Whoever pins it pins the store, its first run and, later, its clock line.
 */
import { randomUUID } from "node:crypto";
import { RUN_MAX } from "@callnumber/protocol/codec";
/** Whole runs per second by which the room for leases grows after a doubt. */
export const RATE_DEFAULT = 2;
export const RATE_MAX = 16;
const PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.(\d{1,10})\.(\d{1,15})\.(\d{1,2})$/;
export function newStoreId({ firstRun, initialisedAtMs, rate }) {
    return `${randomUUID()}.${firstRun}.${initialisedAtMs}.${rate}`;
}
/** The fields of a store id, or undefined when the text is none. */
export function parseStoreId(storeId) {
    const match = PATTERN.exec(storeId);
    if (match === null)
        return undefined;
    const [firstRun, initialisedAtMs, rate] = match.slice(1).map(Number);
    if (firstRun < 1 || firstRun > RUN_MAX || rate < 1 || rate > RATE_MAX)
        return undefined;
    return { firstRun, initialisedAtMs, rate };
}
//# sourceMappingURL=store-id.js.map