import { PHASES } from "./product.js";
export const LIMITS = {
    "clocks-wrong-together": "A1, R2: the clocks of coordinator and store are not both wrong in the same direction by more than eps. A right clock whose " +
        "message is long under way is right.",
    "rollback-nobody-remembers": "R3: from a store that was rolled back inside one server process, to a state younger than the gap, nobody leases who " +
        "remembers no more than what came back, until one who does has settled it.",
};
export class Limits {
    #options;
    #rollbacks = new Map();
    constructor(options) {
        this.#options = options;
    }
    /** Whether a call may reach this server now; else it is lost. `clockAheadMs`: how wrong the caller's clock was when it sent it. */
    mayMeet(server, command, clockAheadMs) {
        return this.#mayMeetInTime(server, clockAheadMs) && this.#mayLease(server, command);
    }
    /** Whether these keys may be put back into the running server: somebody must remember more, or the record be doubted anyway. */
    mayPutBack(server, contents) {
        if (this.#options.lifted.has("rollback-nobody-remembers") || !this.#isBelieved(server, contents))
            return true;
        return this.#options.hosts().some(({ memory }) => remembersMore(memory, contents));
    }
    notePutBack(server) {
        this.#rollbacks.set(server, { epoch: server.epoch, forgottenMark: server.markReached });
    }
    /** Whether a coordinator may lose what it remembers: not the last one that knows of a rollback. */
    mayForget(host) {
        const { lifted, hosts } = this.#options;
        if (lifted.has("rollback-nobody-remembers"))
            return true;
        const others = hosts().filter((other) => other !== host);
        return [...this.#rollbacks.keys()].every((server) => {
            if (this.#rollbackOf(server) === undefined || server.contents.record === undefined)
                return true;
            return others.some(({ memoryOfProcess }) => remembersMore(memoryOfProcess, server.contents));
        });
    }
    #mayMeetInTime(server, clockAheadMs) {
        const { bounds, lifted } = this.#options;
        if (lifted.has("clocks-wrong-together"))
            return true;
        const areAhead = Math.min(clockAheadMs, server.clockAheadMs) > bounds.epsMs;
        const areBehind = Math.max(clockAheadMs, server.clockAheadMs) < -bounds.epsMs;
        return !areAhead && !areBehind;
    }
    #mayLease(server, command) {
        if (command.step !== "lease" || this.#rollbackOf(server) === undefined)
            return true;
        if (this.#options.lifted.has("rollback-nobody-remembers"))
            return true;
        if (!this.#isBelieved(server, server.contents))
            return true;
        return remembersMore({ ledgerId: command.floor, generation: command.generationMin }, server.contents);
    }
    #rollbackOf(server) {
        const rollback = this.#rollbacks.get(server);
        if (rollback === undefined)
            return undefined;
        const isOver = server.epoch !== rollback.epoch || Number(server.contents.record?.["c"] ?? 0) >= rollback.forgottenMark;
        if (isOver)
            this.#rollbacks.delete(server);
        return isOver ? undefined : rollback;
    }
    /** Whether nothing in the record itself, or in its age, tells that it is not the latest. */
    #isBelieved(server, { record }) {
        if (record === undefined)
            return false;
        const { time, bounds } = this.#options;
        const isYoung = time.nowMs - bounds.epsMs - Number(record["t"]) <= bounds.gapMs;
        return isYoung && Number(record["p"]) === PHASES.open && record["ep"] === server.epoch;
    }
}
function remembersMore(memory, { record }) {
    if (memory === undefined || record === undefined)
        return false;
    return memory.ledgerId > Number(record["c"]) || memory.generation > Number(record["g"]);
}
//# sourceMappingURL=limits.js.map