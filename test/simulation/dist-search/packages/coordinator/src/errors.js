/** The code is stable and listed in docs/errors.md; the message says what happened, with the value, and what to do. */
export class CoordinatorError extends Error {
    code;
    name = "CoordinatorError";
    retryAfterMs;
    /** The record's generation, where a doubt was found: whoever settles it claims from there. */
    generation;
    constructor(code, message, options = {}) {
        super(message, "cause" in options ? { cause: options.cause } : undefined);
        this.code = code;
        this.retryAfterMs = options.retryAfterMs;
        this.generation = options.generation;
    }
}
//# sourceMappingURL=errors.js.map