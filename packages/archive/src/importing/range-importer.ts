/**
 * Imports one range from its source into the archive: read, look up, parse, number, store. Puts the layers together, and
 * knows nothing of processes.
 *
 * The order matters. What is already stored is found before a number is taken, the numbers are taken before the archive
 * is locked, and all rows of the range are stored in one transaction or not at all.
 */
import {
  type Archive,
  type LookUp,
  NOTHING_STORED,
  placeKey,
  type Stored,
  type StoredNow,
  type StoreResult,
} from "../archive/archive.js";
import type { NewMessage } from "../archive/insert-message.js";
import type { Same } from "../archive/same-messages.js";
import { joinProblems, parseMessage } from "../message/parse-message.js";
import { type Digests, digestsOf, sha256 } from "../message/sameness.js";
import { readRange, type SourceMessage } from "../sources/read-range.js";
import type { Problem, Range } from "../sources/source.js";

/** The part of a client that an importer needs: `Client` of @callnumber/client fits. */
export interface NumberSource {
  /** Returns `count` fresh call numbers, none of them ever returned before. */
  take(count: number): Promise<readonly string[]>;
  /** The store that they come from; known from the first number on. */
  readonly storeId: string | undefined;
}

/** A message that got a number. */
export interface NumberedMessage {
  readonly callNumber: string;
  readonly source: string;
  readonly number: number;
  readonly subject: string | null;
}

export interface RangeResult extends Pick<StoreResult, "copies" | "relations"> {
  readonly stored: readonly NumberedMessage[];
  /** Of those, how many have the number that they had before. */
  readonly restored: number;
  /** Stored before from another place. With `skip` they are listed as copies, else they are in `stored`. */
  readonly sameContent: number;
  readonly alreadyThere: number;
  readonly notStored: number;
  readonly problems: readonly Problem[];
}

export interface RangeSettings {
  readonly namespace: string;
  /** The list that the messages belong to; undefined: each says itself. */
  readonly list: string | undefined;
  /** Called with what will be stored, before it is. */
  readonly beforeCommit?: (stored: readonly StoredNow[]) => void;
}

export class RangeImporter {
  readonly #archive: Archive;
  readonly #settings: RangeSettings;
  readonly #numbers: NumberSource;
  /**
   * Numbers that were taken and are not used yet: a message that another import has stored meanwhile needs none, and the
   * next message gets its number. What is left when the process ends is discarded.
   */
  #unused: string[] = [];

  constructor(archive: Archive, numbers: NumberSource, settings: RangeSettings) {
    this.#archive = archive;
    this.#numbers = numbers;
    this.#settings = settings;
  }

  /**
   * Stores the messages of the range that are not stored yet.
   * @throws what `numbers.take` throws, and what `Archive.store` throws. Nothing of the range is stored then.
   */
  async import(range: Range): Promise<RangeResult> {
    const problems: Problem[] = [];
    const fresh: NewMessage[] = [];
    const same = new Map<NewMessage, Same>();
    const { version } = this.#archive;
    const storedIn = range.kind === "mbox" ? this.#storedIn(range) : undefined;
    for (const message of await readRange(range)) {
      if (!("raw" in message)) {
        problems.push(message);
        continue;
      }
      const { source, number, byteOffset } = message;
      const contentHash = sha256(message.raw);
      let row: Pick<Stored, "problem"> | undefined =
        storedIn === undefined
          ? this.#archive.find({ source, byteOffset, contentHash })
          : storedIn.get(placeKey(byteOffset, contentHash));
      if (row === undefined) {
        const parsed = newMessage(message, digestsOf(message.raw, contentHash), this.#settings.list);
        const found = this.#archive.findSame(parsed);
        if (found !== undefined) same.set(parsed, found);
        fresh.push(parsed);
        row = parsed;
      }
      if (row.problem !== null) problems.push({ source, number, byteOffset, reason: row.problem, stored: true });
    }
    const { stored, copies, relations } = await this.#store(fresh, { version, same });
    const notStored = problems.filter((problem) => !problem.stored).length;
    const sameContent = Object.values(copies).reduce((sum, count) => sum + count, 0);
    const newCount = stored.length + (this.#archive.policy.sameContent === "skip" ? sameContent : 0);
    return {
      stored: stored.map(({ callNumber, message: { source, number, subject } }) => ({
        callNumber,
        source,
        number,
        subject,
      })),
      restored: stored.filter(({ isRestored }) => isRestored).length,
      copies,
      relations,
      sameContent,
      alreadyThere: range.items.length - notStored - newCount,
      notStored,
      problems,
    };
  }

  /** One question for all messages of the range. */
  #storedIn({ source, items }: Range & { kind: "mbox" }): ReadonlyMap<string, Stored> {
    return this.#archive.storedIn(source, items[0]?.offset ?? 0, items.at(-1)?.offset ?? 0);
  }

  async #store(messages: readonly NewMessage[], lookUp: LookUp): Promise<StoreResult> {
    if (messages.length === 0) return NOTHING_STORED;
    const { policy, known } = this.#archive;
    const isNumbered = (message: NewMessage) => policy.sameContent === "number" || !lookUp.same.has(message);
    const isFresh = (message: NewMessage) => known.find(message, policy.weakestRule) === undefined;
    let count = messages.filter((message) => isNumbered(message) && isFresh(message)).length;
    for (;;) {
      const missing = count - this.#unused.length;
      if (missing > 0) this.#unused.push(...(await this.#numbers.take(missing)));
      const storeId = this.#numbers.storeId ?? this.#archive.origin?.storeId;
      if (storeId === undefined) throw new Error("broken invariant: numbers were taken from an unknown store");
      const origin = { storeId, namespace: this.#settings.namespace };
      try {
        const result = this.#archive.store(messages, this.#unused, origin, lookUp, this.#settings.beforeCommit);
        this.#unused.splice(0, result.usedCount);
        return result;
      } catch (error) {
        // Another import has used a number that a message had before: now it needs a fresh one.
        if (!(error instanceof RangeError) || count === messages.length) throw error;
        count = messages.length;
      }
    }
  }
}

function newMessage(message: SourceMessage, digests: Digests, givenList: string | undefined): NewMessage {
  const { source, number, byteOffset, fromLine, raw } = message;
  const fields = parseMessage(raw);
  const list = givenList ?? fields.listId;
  const problem = joinProblems([message.problem, fields.problem]);
  const isListGiven = givenList !== undefined;
  // Spread last: V8 is many times slower at a property that is added to a spread object.
  return { source, number, byteOffset, fromLine, raw, list, isListGiven, ...digests, ...fields, problem };
}
