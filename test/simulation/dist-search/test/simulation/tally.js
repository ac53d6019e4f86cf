import { lineAt, parseStoreId } from "./product.js";
export class Tally {
    leases = [];
    violation;
    runCount = 0;
    /** How often the plain counter gave a number that it had given before; and the counter whose writes are waited for. */
    controlRepeats = 0;
    waitedControlRepeats = 0;
    #counters = new Set();
    #waitedCounters = new Set();
    /** A lease has left a coordinator. `lastRun`: the last one that the same importer has from before, when it still waits for this one. */
    receive(lease, nowMs, epsMs, words, lastRun) {
        const received = { firstRun: lease.firstRun, lastRun: lease.firstRun + lease.runCount - 1, words };
        const before = this.leases.find((other) => other.firstRun <= received.lastRun && received.firstRun <= other.lastRun);
        if (before !== undefined) {
            const run = Math.max(before.firstRun, received.firstRun);
            this.#violate("no run is leased twice", `run ${run} was leased to ${before.words}, and again to ${words}`);
        }
        if (typeof lastRun === "number" && received.firstRun <= lastRun) {
            this.#violate("the runs of an importer rise", `${words} got run ${received.firstRun} after run ${lastRun}`);
        }
        const id = parseStoreId(lease.storeId);
        if (id === undefined || lease.version !== 0 || received.lastRun > lineAt(id, 0, nowMs + epsMs)) {
            this.#violate("no run lies above the clock line", `${words} got run ${received.lastRun} of ${lease.storeId}`);
        }
        this.leases.push(received);
        this.runCount += lease.runCount;
    }
    receiveCounter(counter, isAcknowledged) {
        this.controlRepeats += addedTwice(this.#counters, counter);
        if (isAcknowledged)
            this.waitedControlRepeats += addedTwice(this.#waitedCounters, counter);
    }
    /** After healing nothing was leased in the time that is promised. */
    miss(words) {
        this.#violate("after healing a lease succeeds", words);
    }
    #violate(promise, words) {
        this.violation ??= { promise, words };
    }
}
function addedTwice(numbers, number) {
    if (numbers.has(number))
        return 1;
    numbers.add(number);
    return 0;
}
//# sourceMappingURL=tally.js.map