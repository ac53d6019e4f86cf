/**
 * Histories as plain data: a setting and a list of steps. Drawn from a seed, shrunk by fast-check to a short one that still fails, and
 * written down as JSON they are the same again.
 */
import fc from "fast-check";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { GROUPS, KINDS } from "./faults/kinds.js";
const PARAMETER_MAX = 2 ** 30 - 1;
const FLOW_MAX = 7;
const AGE_MAX_MS = 25 * 24 * 3_600_000;
const KIND_NAMES = Object.keys(KINDS);
/** Histories of exactly so many steps, which shrink to any shorter ones. */
export function histories(stepCount, theme) {
    return new HistoryArbitrary(stepCount, theme);
}
/** fast-check's own commands come in any number; here a number is promised, so only the shrinking is theirs. */
class HistoryArbitrary extends fc.Arbitrary {
    #stepCount;
    #theme;
    constructor(stepCount, theme) {
        super();
        this.#stepCount = stepCount;
        this.#theme = theme;
    }
    generate(mrng) {
        const draw = (min, max) => mrng.nextInt(min, max);
        return new fc.Value(drawn(draw, this.#stepCount, this.#theme), undefined);
    }
    canShrinkWithoutContext(_value) {
        return true;
    }
    shrink(value, context) {
        return SMALLER.shrink(value, context);
    }
}
/** Faults that belong together; undefined stands for any. */
const THEMES = [
    undefined,
    undefined,
    undefined,
    ["failover", "crashes", "routes"],
    ["failover", "crashes"],
    ["failover", "cuts", "lag", "routes"],
    ["failover", "edits", "routes"],
    ["crashes", "edits", "hosts"],
    ["backups", "crashes", "hosts"],
    ["rollbacks", "hosts", "silences"],
    ["operator", "failover", "backups"],
];
const ONES = Array.from({ length: 18 }, () => 1);
function drawn(draw, stepCount, given) {
    const pick = (choices) => choices[draw(0, choices.length - 1)];
    const setting = {
        serverCount: pick([1, 1, 2, 3, 3, 3]),
        hostCount: pick([1, 2, 2, 3]),
        importerCount: pick([2, 3, 4]),
        rate: pick([1, 1, 1, 2, 16]),
        firstRun: pick([...ONES, draw(1, RUN_MAX), RUN_MAX - draw(0, 400)]),
        ageMs: pick([0, draw(0, 100_000), draw(0, AGE_MAX_MS)]),
        isOnLine: pick([true, true, false]),
        witness: pick(["none", "own", "shared"]),
        order: draw(0, PARAMETER_MAX),
    };
    // A history knows some groups of faults only: deep combinations of few find more than a little of everything.
    const theme = given ?? pick(THEMES) ?? GROUPS.filter(() => draw(0, 2) === 0);
    const groups = new Set(["course", ...theme]);
    const kinds = KIND_NAMES.filter((kind) => groups.has(KINDS[kind].group)).flatMap((kind) => Array.from({ length: KINDS[kind].weight }, () => kind));
    const steps = Array.from({ length: stepCount }, () => ({
        kind: pick(kinds),
        a: draw(0, PARAMETER_MAX),
        b: draw(0, PARAMETER_MAX),
        flow: draw(0, FLOW_MAX),
    }));
    return { setting, steps };
}
/** What a failing history may become. */
const SMALLER = fc.record({
    setting: fc.record({
        serverCount: fc.integer({ min: 1, max: 3 }),
        hostCount: fc.integer({ min: 1, max: 3 }),
        importerCount: fc.integer({ min: 1, max: 4 }),
        rate: fc.integer({ min: 1, max: 16 }),
        firstRun: fc.integer({ min: 1, max: RUN_MAX }),
        ageMs: fc.nat(AGE_MAX_MS),
        isOnLine: fc.boolean(),
        witness: fc.constantFrom("none", "own", "shared"),
        order: fc.nat(PARAMETER_MAX),
    }),
    steps: fc.array(fc.record({
        kind: fc.constantFrom(...KIND_NAMES),
        a: fc.nat(PARAMETER_MAX),
        b: fc.nat(PARAMETER_MAX),
        flow: fc.nat(FLOW_MAX),
    })),
});
//# sourceMappingURL=history.js.map