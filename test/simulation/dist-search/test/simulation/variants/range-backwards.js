import { decide, isRefusal } from "../product.js";
/**
 * The range counted back from the new mark by as many runs as were asked: when it was cut short, because room or run space are scarce,
 * it begins below the old mark.
 */
export const RANGE_BACKWARDS = {
    name: "range-backwards",
    fault: "a range is counted back from the new mark, also when it was cut short",
    decide(situation, command) {
        const decision = decide(situation, command);
        if (command.step !== "lease" || isRefusal(decision))
            return decision;
        return { ...decision, runCount: Math.min(command.runCount, decision.record.mark) };
    },
};
//# sourceMappingURL=range-backwards.js.map