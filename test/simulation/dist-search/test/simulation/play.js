/** Plays one history, step by step, as fast-check's commands: the tally is the model, the world the real thing. */
import fc from "fast-check";
import { askForLease } from "./faults/course.js";
import { Choices } from "./faults/kind.js";
import { KINDS } from "./faults/kinds.js";
import { heal } from "./healing.js";
import { World } from "./world.js";
/** The first levels of flow let everything arrive; the others so few messages. */
const FLOWS = [Infinity, Infinity, Infinity, Infinity, Infinity, 0, 2, 8];
export async function play({ setting, steps }, rules) {
    const world = new World(setting, rules);
    await world.begin();
    let stepCount = 0;
    const commands = steps.map((step) => new PlayedStep(step, () => stepCount++));
    await fc.asyncModelRun(() => ({ model: world.tally, real: world }), commands);
    if (world.tally.violation === undefined)
        await heal(world);
    return { world, violation: world.tally.violation, stepCount };
}
class PlayedStep {
    step;
    count;
    constructor(step, count) {
        this.step = step;
        this.count = count;
    }
    /** After a broken promise nothing more is to be learnt. */
    check({ violation }) {
        return violation === undefined;
    }
    async run(_, world) {
        const { kind, a, b, flow } = this.step;
        this.count();
        // What can't be now is a request for a lease instead: a history has as many steps as it says.
        const isPlayed = await KINDS[kind].play(world, new Choices(a), new Choices(b));
        if (!isPlayed)
            askForLease(world, new Choices(a), new Choices(b));
        const played = isPlayed ? kind : "lease";
        world.played.set(played, (world.played.get(played) ?? 0) + 1);
        await world.settle(FLOWS[flow]);
    }
    toString() {
        return JSON.stringify(this.step);
    }
}
//# sourceMappingURL=play.js.map