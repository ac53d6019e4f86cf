/** A number as a row of choices. */
export class Choices {
    #rest;
    constructor(number) {
        this.#rest = number;
    }
    /** 0 to `count - 1`. */
    of(count) {
        const chosen = this.#rest % count;
        this.#rest = Math.floor(this.#rest / count);
        return chosen;
    }
    one(items) {
        return items[this.of(items.length)];
    }
    /** Mostly false; false for 0. */
    isRare(oneIn) {
        return this.of(oneIn) === oneIn - 1;
    }
}
//# sourceMappingURL=kind.js.map