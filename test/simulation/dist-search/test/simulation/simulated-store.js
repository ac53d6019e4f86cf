import { CoordinatorError, namespaceRecordIn, refused, } from "./product.js";
/** What happens to the next call on a connection. */
export const MISHAPS = [
    "request lost",
    "request late",
    "request doubled",
    "answer lost",
    "answer late",
    "answer doubled",
];
/** How long a call may take, as in the product; then its connection is dropped. What was asked may still be done, at any later time. */
const CALL_TIMEOUT_MS = 5_000;
export class SimulatedStore {
    kind = "simulated";
    isExclusive = false;
    #options;
    #isDead = false;
    #mishap;
    /** An answer that came twice, and is taken for the one to the next call. */
    #stray;
    constructor(options) {
        this.#options = options;
    }
    /** For the next step; undefined: no mishap after all. */
    befall(mishap) {
        this.#mishap = mishap;
    }
    /** The process is killed: its promises never settle. */
    kill() {
        this.#isDead = true;
    }
    step(_namespace, command) {
        const mishap = this.#mishap;
        this.#mishap = undefined;
        const { place, network, calls, clock, time } = this.#options;
        const server = this.#server;
        return new Promise((resolve, reject) => {
            if (this.#isDead)
                return;
            let isAnswered = false;
            const stopWaiting = time.after(CALL_TIMEOUT_MS, () => settle({ isLost: true }));
            const settle = (own) => {
                if (this.#isDead || isAnswered)
                    return;
                isAnswered = true;
                stopWaiting();
                const answer = this.#stray ?? own;
                this.#stray = mishap === "answer doubled" ? own : undefined;
                this.#handOutCounter(command, answer);
                this.#options.wakes();
                if (answer.outcome !== undefined)
                    resolve(answer.outcome);
                else if (answer.refusal !== undefined) {
                    reject(refused(answer.refusal.word, answer.refusal.detail, this.#options.namespace));
                }
                else
                    reject(unavailable());
            };
            const call = {
                command,
                stampMs: clock(),
                clockAheadMs: clock() - time.nowMs,
                reply: (answer) => {
                    if (mishap === "answer late")
                        network.holdBack(server.index, place, "late answer", () => settle(answer));
                    else if (mishap === "answer lost")
                        network.carry(server.index, place, "reset", () => settle({ isLost: true }));
                    else
                        network.carry(server.index, place, "answer", () => settle(answer));
                },
            };
            if (mishap === "request lost")
                return network.carry(place, place, "reset", () => settle({ isLost: true }));
            if (mishap === "request late") {
                return network.holdBack(place, server.index, "late request", () => calls.receive(server, call));
            }
            network.carry(place, server.index, "request", () => calls.receive(server, call));
            if (mishap === "request doubled")
                network.holdBack(place, server.index, "doubled", () => calls.receive(server, call));
        });
    }
    readNamespace(namespace) {
        const { place, network } = this.#options;
        const server = this.#server;
        return new Promise((resolve, reject) => {
            if (this.#isDead)
                return;
            network.carry(place, server.index, "read", () => {
                const { isUp } = server;
                const { record } = server.contents;
                network.carry(server.index, place, "answer", () => {
                    if (this.#isDead)
                        return;
                    this.#options.wakes();
                    if (!isUp)
                        return reject(unavailable());
                    if (record === undefined)
                        return reject(refused("EMPTY", "no record", namespace));
                    try {
                        resolve(namespaceRecordIn(record, namespace));
                    }
                    catch (error) {
                        reject(error);
                    }
                });
            });
        });
    }
    async listNamespaces() {
        return [this.#options.namespace];
    }
    async report() { }
    async findLease() { }
    async listLeases() {
        return [];
    }
    async firstLeaseSince() { }
    async preflight() {
        return [];
    }
    async exportLeases() {
        return [];
    }
    async importLeases() { }
    async close() { }
    get #server() {
        const { group, route } = this.#options;
        return group.at(route());
    }
    #handOutCounter({ step }, { counter, outcome }) {
        if (step !== "lease" || counter === undefined)
            return;
        this.#options.handsOutCounter(counter, outcome !== undefined && outcome.acknowledgedCount > 0);
    }
}
function unavailable() {
    return new CoordinatorError("store_unavailable", "the connection broke: not known whether the step was done");
}
//# sourceMappingURL=simulated-store.js.map