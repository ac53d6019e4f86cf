export const HOST_PLACE = 8;
export const OPERATOR_PLACE = 15;
const PLACE_COUNT = 16;
const NOW = Promise.resolve();
export class Network {
    #scheduler;
    #cuts = new Set();
    #stopped = new Set();
    /** Waits for a cut to heal or a process to go on. */
    #stuck = [];
    /** Held back for nothing but lateness. */
    #late = [];
    constructor(scheduler) {
        this.#scheduler = scheduler;
    }
    get waitingCount() {
        return this.#scheduler.count();
    }
    deliverOne() {
        return this.#scheduler.waitOne();
    }
    carry(from, to, label, arrive) {
        this.#send({ from, to, label, arrive });
    }
    /** Until `release`. */
    holdBack(from, to, label, arrive) {
        this.#late.push({ from, to, label, arrive });
    }
    release() {
        const late = this.#late;
        this.#late = [];
        for (const message of late)
            this.#send(message);
        return late.length > 0;
    }
    cut(one, other) {
        this.#cuts.add(pairOf(one, other));
    }
    isCut(one, other) {
        return this.#cuts.has(pairOf(one, other));
    }
    heal() {
        const wasCut = this.#cuts.size > 0;
        this.#cuts.clear();
        this.#resend();
        return wasCut;
    }
    mend(one, other) {
        if (this.#cuts.delete(pairOf(one, other)))
            this.#resend();
    }
    /** SIGSTOP. */
    stop(place) {
        if (this.#stopped.has(place))
            return false;
        this.#stopped.add(place);
        return true;
    }
    /** SIGCONT. */
    goOn(place) {
        if (!this.#stopped.delete(place))
            return false;
        this.#resend();
        return true;
    }
    isStopped(place) {
        return this.#stopped.has(place);
    }
    #resend() {
        const stuck = this.#stuck;
        this.#stuck = [];
        for (const message of stuck)
            this.#send(message);
    }
    #send(message) {
        if (this.#isHeldUp(message)) {
            this.#stuck.push(message);
            return;
        }
        void this.#scheduler.schedule(NOW, message.label).then(() => {
            // Cut while it was under way.
            if (this.#isHeldUp(message))
                this.#stuck.push(message);
            else
                message.arrive();
        });
    }
    #isHeldUp({ from, to }) {
        return this.#cuts.has(pairOf(from, to)) || this.#stopped.has(from) || this.#stopped.has(to);
    }
}
function pairOf(one, other) {
    return Math.min(one, other) * PLACE_COUNT + Math.max(one, other);
}
//# sourceMappingURL=network.js.map