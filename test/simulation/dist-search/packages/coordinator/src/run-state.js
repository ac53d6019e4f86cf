/** What the ledger's entry of a lease says about one of its runs. Pure. */
import { SEQUENCE_MAX } from "@callnumber/protocol/codec";
/** A holder uses the runs of a lease in their order: those before the reported one are used up, those after it untouched. */
export function runStateIn({ progress }, run) {
    if (progress === null)
        return { state: "unreported", lastSequence: null };
    if (run < progress.run)
        return { state: "exhausted", lastSequence: SEQUENCE_MAX };
    if (run === progress.run)
        return { state: progress.state, lastSequence: progress.lastSequence };
    return { state: progress.state === "closed" ? "closed" : "open", lastSequence: null };
}
//# sourceMappingURL=run-state.js.map