/** Capacity and forecast of a namespace, from its record and a few ledger entries. Pure. */
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { parseStoreId } from "./store-id.js";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Over which the rate of use is measured. */
const RATE_WINDOWS_MS = [HOUR_MS, DAY_MS, 7 * DAY_MS];
/** The last instant that a JavaScript date can name. */
const LAST_INSTANT_MS = 8.64e15;
/**
 * The windows that the namespace has lived through, and always the shortest: a longer one would only repeat a shorter one's
 * figures.
 */
export function rateWindowsMsOf(record, nowMs) {
    const lifeMs = lifeMsOf(record, nowMs);
    return RATE_WINDOWS_MS.filter((windowMs, index) => index === 0 || windowMs <= lifeMs);
}
export function statusOf(record, newest, windows, nowMs) {
    const { namespace, storeId, version, firstRun, highWaterMark } = record;
    const firstRunOfVersion = version === 0 ? firstRun : 0;
    const runsUsed = highWaterMark - firstRunOfVersion + 1;
    const runsLeft = RUN_MAX - highWaterMark;
    const lifeMs = lifeMsOf(record, nowMs);
    return {
        namespace,
        storeId,
        version,
        firstRun,
        highWaterMark,
        runsUsed,
        runsLeft,
        callNumbersLeft: runsLeft * SEQUENCE_COUNT,
        lastLeaseAtMs: newest?.leasedAtMs ?? null,
        rates: windows.map(({ windowMs, oldest }) => {
            const runs = oldest === undefined ? 0 : highWaterMark - oldest.firstRun + 1;
            // A namespace younger than the window is measured over its life, but never over less than a minute.
            const measuredMs = Math.max(Math.min(windowMs, lifeMs), MINUTE_MS);
            return rateOf(runs, windowMs, measuredMs, runsLeft, nowMs);
        }),
    };
}
function lifeMsOf({ storeId }, nowMs) {
    return nowMs - (parseStoreId(storeId)?.initialisedAtMs ?? nowMs);
}
function rateOf(runs, windowMs, measuredMs, runsLeft, nowMs) {
    const exhaustedAtMs = runs === 0 ? Number.POSITIVE_INFINITY : nowMs + Math.floor((runsLeft / runs) * measuredMs);
    return {
        windowMs,
        runs,
        runsPerDay: (runs / measuredMs) * DAY_MS,
        exhaustedAtMs: exhaustedAtMs <= LAST_INSTANT_MS ? exhaustedAtMs : null,
    };
}
//# sourceMappingURL=status.js.map