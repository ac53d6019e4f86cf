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
    this.#keep(key, item);
    if (known === undefined) item.catch(() => this.#items.delete(key));
    return item;
  }

  put(key: Key, value: Value): void {
    this.#keep(key, Promise.resolve(value));
  }

  /** The item, which is not kept any longer. */
  take(key: Key): Promise<Value> | undefined {
    const item = this.#items.get(key);
    this.#items.delete(key);
    return item;
  }

  #keep(key: Key, item: Promise<Value>): void {
    this.#items.delete(key);
    this.#items.set(key, item);
    if (this.#items.size <= this.#itemCountMax) return;
    const [oldest] = this.#items.keys();
    this.#items.delete(oldest as Key);
  }
}
