import { CoordinatorError } from "../errors.js";
import { openSince, stateAfter } from "./state.js";
export const PREFLIGHT_EVERY_MS = 60_000;
export class PreflightWatch {
    #options;
    /** By their text. */
    #seen = new Map();
    #timer;
    #looking = Promise.resolve();
    #firstLook = Promise.resolve();
    constructor(options) {
        this.#options = options;
    }
    /** Looks now, and every `everyMs` until `stop`. */
    start() {
        if (this.#timer !== undefined)
            return;
        const look = () => {
            this.#looking = this.#looking.then(() => this.#look());
        };
        this.#timer = setInterval(look, this.#options.everyMs);
        look();
        this.#firstLook = this.#looking;
    }
    async stop() {
        clearInterval(this.#timer);
        this.#timer = undefined;
        await this.#looking;
    }
    /** Once started, nothing is leased before the first look is done. @throws CoordinatorError the code of a finding. */
    async mustPass(namespace) {
        await this.#firstLook;
        const seen = this.#refusalOf(namespace);
        if (seen !== undefined)
            throw errorFor(seen.finding);
    }
    /** What stands in the status of a namespace whose guard has nothing to say; undefined when nothing stands against leasing. */
    stateOf(namespace) {
        const seen = this.#refusalOf(namespace);
        if (seen === undefined)
            return undefined;
        return stateAfter(errorFor(seen.finding), openSince(seen.sinceMs), seen.sinceMs);
    }
    #refusalOf(namespace) {
        for (const { finding, sinceMs } of this.#seen.values()) {
            const { code, namespaces } = finding;
            if (code === undefined || !(namespaces?.includes(namespace) ?? true))
                continue;
            return { finding: { ...finding, code }, sinceMs };
        }
        return undefined;
    }
    /** What was found last holds until the next look that succeeds. */
    async #look() {
        const { store, log, now, overrides } = this.#options;
        let findings;
        try {
            findings = await store.preflight();
        }
        catch (error) {
            if (!(error instanceof CoordinatorError))
                throw error;
            log.warn({ code: error.code, reason: error.message }, "preflight_failed");
            return;
        }
        const counted = findings.filter(({ override }) => override === undefined || !overrides.includes(override));
        const before = this.#seen;
        this.#seen = new Map(counted.map((finding) => [finding.what, { finding, sinceMs: before.get(finding.what)?.sinceMs ?? now() }]));
        for (const finding of counted) {
            if (before.has(finding.what))
                continue;
            log[finding.code === undefined ? "warn" : "error"]({ ...finding }, "preflight_finding");
        }
        for (const [what, { finding }] of before) {
            if (!this.#seen.has(what))
                log.info({ code: finding.code, what }, "preflight_finding_gone");
        }
    }
}
function errorFor({ code, what, remedy, override }) {
    const way = override === undefined ? "" : `, or accept it by name: ${override}`;
    return new CoordinatorError(code, `${what}. Nothing is leased until that is mended (${remedy})${way}`);
}
//# sourceMappingURL=preflight-watch.js.map