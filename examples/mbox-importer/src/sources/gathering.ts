/** Gathers messages until they make a range. Knows nothing of mailboxes. */

/** One transaction, and what a process loses when it is killed. */
const RANGE_MESSAGE_COUNT_MAX = 64;
/** One message may be larger: it is then a range of its own. */
const RANGE_BYTES_MAX = 1024 * 1024;
const FIRST_MESSAGE_COUNT = 8;

/** How many messages a range holds: few at first, so that all processes soon have something to do, then twice as many. */
export class RangeSizes {
  #messageCount = FIRST_MESSAGE_COUNT;

  get messageCount(): number {
    return this.#messageCount;
  }

  grow(): void {
    this.#messageCount = Math.min(this.#messageCount * 2, RANGE_MESSAGE_COUNT_MAX);
  }
}

export class Gathering<T> {
  readonly #sizes: RangeSizes;
  #items: T[] = [];
  #bytes = 0;

  constructor(sizes: RangeSizes) {
    this.#sizes = sizes;
  }

  get count(): number {
    return this.#items.length;
  }

  /** Whether an item of `bytes` must wait for the next range. */
  isFullFor(bytes: number): boolean {
    return this.count > 0 && (this.count >= this.#sizes.messageCount || this.#bytes + bytes > RANGE_BYTES_MAX);
  }

  add(item: T, bytes: number): void {
    this.#items.push(item);
    this.#bytes += bytes;
  }

  take(): T[] {
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    this.#sizes.grow();
    return items;
  }
}
