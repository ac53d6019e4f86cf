/**
 * Call numbers that were taken and are not used yet. A message that turns out to be stored already gives its number back
 * here, and the next message takes it. What lies here when the process ends is burnt.
 */

/** What an importer needs of a client: fits `Client` of @callnumber/client by shape. */
export interface NumberSource {
  /** `count` fresh numbers, none of them ever given before. */
  take(count: number): Promise<readonly string[]>;
  /** The store that they come from; known from the first number on. */
  readonly storeId: string | undefined;
}

export class NumberPocket {
  #numbers: string[] = [];
  readonly #source: NumberSource;

  constructor(source: NumberSource) {
    this.#source = source;
  }

  get storeId(): string | undefined {
    return this.#source.storeId;
  }

  /** Exactly `count` numbers to use from the first on. They stay here until `markUsed`. */
  async atHand(count: number): Promise<readonly string[]> {
    const missing = count - this.#numbers.length;
    if (missing > 0) this.#numbers.push(...(await this.#source.take(missing)));
    return this.#numbers.slice(0, count);
  }

  /** The first `count` numbers are stored: they leave for ever. */
  markUsed(count: number): void {
    this.#numbers.splice(0, count);
  }
}
