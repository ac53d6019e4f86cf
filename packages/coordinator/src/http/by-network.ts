/** What is open, by the network that it comes from; in each the earliest first. Who has most of something gives it back first. */
export class ByNetwork<T> {
  readonly #crowds = new Map<string, Set<T>>();

  get size(): number {
    return this.#crowds.size;
  }

  add(network: string, one: T): void {
    const crowd = this.#crowds.get(network);
    if (crowd === undefined) this.#crowds.set(network, new Set([one]));
    else crowd.add(one);
  }

  delete(network: string, one: T): void {
    const crowd = this.#crowds.get(network);
    crowd?.delete(one);
    if (crowd?.size === 0) this.#crowds.delete(network);
  }

  /** In the order in which the networks came, or were put last. */
  crowds(): Iterable<readonly [network: string, crowd: ReadonlySet<T>]> {
    return this.#crowds;
  }

  /** The crowd of the network that has most; empty when nothing is there. */
  largest(): ReadonlySet<T> {
    let largest: ReadonlySet<T> = new Set();
    for (const crowd of this.#crowds.values()) if (crowd.size > largest.size) largest = crowd;
    return largest;
  }

  /** Behind all others. */
  putLast(network: string): void {
    const crowd = this.#crowds.get(network);
    if (crowd === undefined) return;
    this.#crowds.delete(network);
    this.#crowds.set(network, crowd);
  }
}
