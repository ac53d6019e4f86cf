/**
 * Imports one range from its source into the archive: read, look up, parse, number, store. Puts the layers together, and
 * knows nothing of processes.
 *
 * The order matters. What is already stored is found before a number is taken, the numbers are taken before the archive
 * is locked, and all rows of the range are stored in one transaction or not at all.
 */
import { createHash } from "node:crypto";
import type { Archive, MessageKey, NewMessage } from "../archive/archive.js";
import { joinProblems, parseMessage } from "../message/parse-message.js";
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

export interface RangeResult {
  readonly stored: readonly NumberedMessage[];
  /** Their bytes were stored before from another place. With `skip` they are listed as copies, else they are in `stored`. */
  readonly sameContent: number;
  readonly alreadyThere: number;
  readonly notStored: number;
  readonly problems: readonly Problem[];
}

export class RangeImporter {
  readonly #archive: Archive;
  readonly #namespace: string;
  readonly #numbers: NumberSource;
  /**
   * Numbers that were taken and are not used yet: a message that another import has stored meanwhile needs none, and the
   * next message gets its number. What is left when the process ends is discarded.
   */
  #unused: string[] = [];

  constructor(archive: Archive, numbers: NumberSource, namespace: string) {
    this.#archive = archive;
    this.#numbers = numbers;
    this.#namespace = namespace;
  }

  /**
   * Stores the messages of the range that are not stored yet.
   * @throws what `numbers.take` throws, and what `Archive.store` throws. Nothing of the range is stored then.
   */
  async import(range: Range): Promise<RangeResult> {
    const problems: Problem[] = [];
    const fresh: NewMessage[] = [];
    const copies: NewMessage[] = [];
    for await (const message of readRange(range)) {
      if (!("raw" in message)) {
        problems.push(message);
        continue;
      }
      const key = messageKey(message);
      let row: { readonly problem: string | null } | undefined = this.#archive.find(key);
      if (row === undefined) {
        const parsed = await newMessage(message, key);
        const isCopy = this.#archive.sameContent === "skip" && this.#archive.findSameContent(parsed) !== undefined;
        (isCopy ? copies : fresh).push(parsed);
        row = parsed;
      }
      const { source, number, byteOffset } = message;
      if (row.problem !== null) problems.push({ source, number, byteOffset, reason: row.problem, stored: true });
    }
    const { stored, sameContent } = await this.#store(fresh, copies);
    const notStored = problems.filter((problem) => !problem.stored).length;
    const newCount = stored.length + (this.#archive.sameContent === "skip" ? sameContent : 0);
    return { stored, sameContent, alreadyThere: range.items.length - notStored - newCount, notStored, problems };
  }

  /** `copies` need no numbers. */
  async #store(fresh: readonly NewMessage[], copies: readonly NewMessage[]): Promise<Stored> {
    if (fresh.length + copies.length === 0) return { stored: [], sameContent: 0 };
    const missing = fresh.length - this.#unused.length;
    if (missing > 0) this.#unused.push(...(await this.#numbers.take(missing)));
    const storeId = this.#numbers.storeId ?? this.#archive.origin?.storeId;
    if (storeId === undefined) throw new Error("broken invariant: numbers were taken from an unknown store");
    const origin = { storeId, namespace: this.#namespace };
    const { stored, sameContent } = this.#archive.store([...copies, ...fresh], this.#unused, origin);
    this.#unused.splice(0, stored.length);
    return {
      stored: stored.map(({ callNumber, message: { source, number, subject } }) => ({
        callNumber,
        source,
        number,
        subject,
      })),
      sameContent,
    };
  }
}

type Stored = Pick<RangeResult, "stored" | "sameContent">;

function messageKey({ source, byteOffset, raw }: SourceMessage): MessageKey {
  return { source, byteOffset, contentHash: createHash("sha256").update(raw).digest() };
}

async function newMessage(message: SourceMessage, key: MessageKey): Promise<NewMessage> {
  const { number, fromLine, raw } = message;
  const fields = await parseMessage(raw);
  return { ...key, ...fields, number, fromLine, raw, problem: joinProblems([message.problem, fields.problem]) };
}
