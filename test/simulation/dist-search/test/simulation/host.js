/**
 * A host where a coordinator runs: its clock, what it remembers on disk, and the process itself, which may be killed and started again
 * at any await. The coordinator is the product's own.
 */
import { Coordinator, DAMAGED, merged, } from "./product.js";
export class Host {
    index;
    folder;
    clockAheadMs = 0;
    /** Index of the server that it is pointed at. */
    route = 0;
    #options;
    #store;
    #coordinator;
    /** What the running process remembers; undefined before it has seen the store. */
    #memory;
    /** Counts the processes: what an earlier one was asked, nobody waits for. */
    life = 0;
    constructor(options) {
        this.index = options.index;
        this.folder = options.folder;
        this.#options = options;
        this.restart();
    }
    get coordinator() {
        if (this.#coordinator === undefined)
            throw new Error("broken invariant: a host always runs a coordinator");
        return this.#coordinator;
    }
    get store() {
        if (this.#store === undefined)
            throw new Error("broken invariant: a coordinator always has a store");
        return this.#store;
    }
    get nowMs() {
        return this.#options.time.nowMs + this.clockAheadMs;
    }
    /** What this coordinator is certain to hold against the store at its next step; undefined for nothing. */
    get memory() {
        return this.#memory ?? this.#readFolder();
    }
    /** Without what lies on its disk only. */
    get memoryOfProcess() {
        return this.#memory;
    }
    /** Kills the process and starts it again. */
    restart() {
        this.life++;
        this.#memory = undefined;
        this.#store?.kill();
        this.#store = this.#options.openStore(this);
        const { bounds, random } = this.#options;
        this.#coordinator = new Coordinator({
            store: this.#store,
            name: `coordinator-${this.index}`,
            now: () => this.nowMs,
            bounds,
            random,
            witnessOf: () => this.#witness(),
            pause: (pauseMs) => this.#pause(pauseMs),
        });
    }
    /** The machine's witness files are lost. */
    loseWitness() {
        if (this.folder === undefined)
            return;
        this.folder.notes.clear();
        this.folder.isDamaged = false;
    }
    /** A witness file can't be read any more, for as long as nobody removes it. */
    damageWitness() {
        if (this.folder !== undefined)
            this.folder.isDamaged = true;
    }
    /** One round of touching, as the timer of `startTouching` makes it; real time plays no part. */
    touch() {
        this.coordinator.startTouching();
        void this.coordinator.stopTouching();
    }
    /** A killed process does not go on. */
    #pause(pauseMs) {
        const { life } = this;
        return new Promise((resolve) => {
            this.#options.time.after(pauseMs, () => {
                if (this.life !== life)
                    return;
                this.#options.wakes();
                resolve();
            });
        });
    }
    #witness() {
        const life = this.life;
        return {
            read: () => (this.folder?.isDamaged ? DAMAGED : this.#readFolder()),
            note: (remembrance) => {
                if (this.life !== life)
                    return;
                this.#memory = remembrance;
                if (this.folder === undefined)
                    return;
                this.folder.notes.set(this.index, remembrance);
            },
            close: () => { },
        };
    }
    #readFolder() {
        const notes = [...(this.folder?.notes.values() ?? [])];
        return notes.length === 0 ? undefined : notes.reduce(merged);
    }
}
//# sourceMappingURL=host.js.map