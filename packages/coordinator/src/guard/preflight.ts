/**
 * Checks the store's servers at the start and every minute. What could lose or repeat runs stops leasing before it happens; an operator may
 * accept a finding by its name. Knows the store only through `Store.preflight`.
 */
import type { ErrorCode } from "@callnumber/protocol/api";
import { CoordinatorError, remedyIn } from "../errors.js";
import type { Log } from "../log.js";
import { type Store } from "../stores/store.js";
import { activeSince, type GuardState, nextState } from "./guard-state.js";
import type { CountedNodes, Finding } from "./step-store.js";

export const PREFLIGHT_EVERY_MS = 60_000;
/** While a finding stops leasing: an operator who has fixed it waits no longer. */
const REFUSING_EVERY_MS = 5_000;

export interface PreflightOptions {
  readonly store: Pick<Store, "preflight">;
  readonly log: Log;
  readonly now: () => number;
  /** Names of findings (`Finding.override`) that an operator accepts: they are ignored. */
  readonly overrides: readonly string[];
  readonly everyMs: number;
}

type Refusal = Finding & { readonly code: ErrorCode };

interface Seen {
  readonly finding: Finding;
  readonly sinceMs: number;
}

export class PreflightWatch {
  readonly #options: PreflightOptions;
  /** By their text. */
  #seen: ReadonlyMap<string, Seen> = new Map();
  #timer: ReturnType<typeof setInterval> | undefined;
  #check: Promise<void> = Promise.resolve();
  #firstCheck: Promise<void> = Promise.resolve();

  constructor(options: PreflightOptions) {
    this.#options = options;
  }

  /** Checks now, and every `everyMs` until `stop`; more often while a finding stops leasing. */
  start(): void {
    if (this.#timer !== undefined) return;
    const { everyMs } = this.#options;
    const check = () => {
      this.#check = this.#check.then(() => this.#checkServers());
    };
    const tickMs = Math.min(everyMs, REFUSING_EVERY_MS);
    let waitedMs = 0;
    this.#timer = setInterval(() => {
      waitedMs += tickMs;
      const isRefusing = [...this.#seen.values()].some(({ finding }) => finding.code !== undefined);
      if (waitedMs < everyMs && !isRefusing) return;
      waitedMs = 0;
      check();
    }, tickMs);
    check();
    this.#firstCheck = this.#check;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#check;
  }

  /** Once started, nothing is leased before the first check has ended. @throws CoordinatorError with the code of a finding. */
  async assertPassed(namespace: string): Promise<void> {
    await this.#firstCheck;
    const seen = this.#refusalOf(namespace);
    if (seen !== undefined) throw errorFor(seen.finding);
  }

  /** As the function below, with what this coordinator accepts. */
  assertFitFor(planned: CountedNodes): Promise<void> {
    return assertFitFor(this.#options, planned);
  }

  /** Returns what stops leasing, or is unwise, as far as the store's user may see it. Never rejects for an unreachable store. */
  async findings(): Promise<readonly Finding[]> {
    try {
      return await this.#options.store.preflight({ asOperator: true });
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      const { code, message } = error;
      return [{ code, what: message, remedy: remedyIn(message) ?? "let the coordinator reach it and write to it" }];
    }
  }

  /** Returns the state that a finding puts a namespace in; where none stops leasing, or the guard does already, the guard's own. */
  effectiveState(namespace: string, own: GuardState): GuardState {
    const seen = own.state === "active" ? this.#refusalOf(namespace) : undefined;
    if (seen === undefined) return own;
    return nextState(errorFor(seen.finding), activeSince(seen.sinceMs), seen.sinceMs);
  }

  #refusalOf(namespace: string): { readonly finding: Refusal; readonly sinceMs: number } | undefined {
    for (const { finding, sinceMs } of this.#seen.values()) {
      const { code, namespaces } = finding;
      if (code === undefined || !(namespaces?.includes(namespace) ?? true)) continue;
      return { finding: { ...finding, code }, sinceMs };
    }
    return undefined;
  }

  /** The last findings are kept until the next check succeeds. */
  async #checkServers(): Promise<void> {
    const { store, log, now, overrides } = this.#options;
    let findings: readonly Finding[];
    try {
      findings = await store.preflight();
    } catch (error) {
      // The next check may succeed: no error may end the process.
      if (error instanceof CoordinatorError) {
        log.warn({ code: error.code, reason: error.message }, "preflight_failed");
      } else log.error({ err: error }, "preflight_failed");
      return;
    }
    const counted = unaccepted(findings, overrides);
    const before = this.#seen;
    this.#seen = new Map(
      counted.map((finding) => [finding.what, { finding, sinceMs: before.get(finding.what)?.sinceMs ?? now() }]),
    );
    for (const finding of counted) {
      if (before.has(finding.what)) continue;
      log[finding.code === undefined ? "warn" : "error"]({ ...finding }, "preflight_finding");
    }
    for (const [what, { finding }] of before) {
      if (!this.#seen.has(what)) log.info({ code: finding.code, what }, "preflight_finding_resolved");
    }
  }
}

/**
 * Before a namespace is made with more nodes than one, or counts more: checks whether the servers are configured for it.
 * @throws CoordinatorError with the code of a finding that is not accepted: nothing was changed.
 */
export async function assertFitFor(
  { store, overrides }: Pick<PreflightOptions, "store" | "overrides">,
  planned: CountedNodes,
): Promise<void> {
  if (planned.nodeCount === 1) return;
  for (const { code, ...finding } of unaccepted(await store.preflight({ planned }), overrides)) {
    if (code !== undefined && finding.namespaces?.includes(planned.namespace)) throw errorFor({ ...finding, code });
  }
}

/** Findings without those whose names the operator accepts. */
export function unaccepted(findings: readonly Finding[], overrides: readonly string[]): readonly Finding[] {
  return findings.filter(({ override }) => override === undefined || !overrides.includes(override));
}

function errorFor({ code, what, remedy, override }: Refusal): CoordinatorError {
  const way = override === undefined ? "" : ` (or accept it: --ignore-findings ${override})`;
  return new CoordinatorError(code, `${what}. Nothing is leased until that is fixed: ${remedy}${way}`);
}
