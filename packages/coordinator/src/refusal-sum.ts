/** Refusals that get no event or line of their own: how many they were, and who caused most of them. What is kept is bounded, whoever comes. */

/** Whom a refusal concerns, as far as that is known. */
export interface RefusedCaller {
  /** Of the token that the request bore. */
  readonly tokenId?: string | undefined;
  /** The other end of the connection: a proxy, where one stands in front. */
  readonly remoteAddress?: string | undefined;
}

interface Told {
  readonly refusalCount: number;
  /** Those with most of them, who need not have all. */
  readonly callers: readonly (RefusedCaller & { readonly refusalCount: number })[];
}

/** A line of the log stays one that can be read. */
export const CALLERS_TOLD_MAX = 5;
/** Who comes later is counted in the whole sum only. */
export const CALLERS_KEPT_MAX = 1_000;

export class RefusalSum {
  readonly #callers = new Map<string, RefusedCaller & { refusalCount: number }>();
  #refusalCount = 0;

  add({ tokenId, remoteAddress }: RefusedCaller): void {
    this.#refusalCount++;
    const key = `${tokenId ?? ""} ${remoteAddress ?? ""}`;
    const known = this.#callers.get(key);
    if (known !== undefined) known.refusalCount++;
    else if (this.#callers.size < CALLERS_KEPT_MAX) this.#callers.set(key, { tokenId, remoteAddress, refusalCount: 1 });
  }

  /** To be asked once, at the end. */
  told(): Told {
    const most = [...this.#callers.values()].sort((one, other) => other.refusalCount - one.refusalCount);
    return { refusalCount: this.#refusalCount, callers: most.slice(0, CALLERS_TOLD_MAX) };
  }
}
