/** Keeps what was used last, up to a number of items. What is kept is never stale: files of an archive don't change. */
export class RecentlyUsed<Key, Value> {
  readonly #items = new Map<Key, Promise<Value>>();
  readonly #itemCountMax: number;

  constructor(itemCountMax: number) {
    this.#itemCountMax = itemCountMax;
  }

  /** The item, made when it is not there. One that could not be made is not kept. */
  get(key: Key, make: () => Promise<Value>): Promise<Value> {
    const known = this.#items.get(key);
    const item = known ?? make();
    if (known !== undefined) this.#items.delete(key);
    this.#items.set(key, item);
    if (known === undefined) {
      item.catch(() => this.#items.delete(key));
      const [oldest] = this.#items.keys();
      if (this.#items.size > this.#itemCountMax) this.#items.delete(oldest as Key);
    }
    return item;
  }
}
