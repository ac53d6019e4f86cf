/**
 * One range from its source into the archive: read, look up, parse, number, store. Puts the layers together; knows nothing
 * of processes.
 *
 * The order is the point. What is there already is found before a number is made, the numbers are in hand before the
 * archive is locked, and all rows of the range are stored in one transaction or not at all.
 */

import { createHash } from "node:crypto";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import type { Archive, MessageKey, NewMessage } from "../archive/archive.js";
import { unquoteFromLines } from "../mbox/quoting.js";
import { parseMessage } from "../message/parse-message.js";
import type { Problem, Range } from "../sources/range.js";
import { type FoundMessage, readRange } from "../sources/read-range.js";
import { NumberPocket, type NumberSource } from "./number-pocket.js";

export interface RangeResult {
  readonly stored: number;
  readonly alreadyThere: number;
  readonly notStored: number;
  readonly problems: readonly Problem[];
}

export class RangeImporter {
  readonly #archive: Archive;
  readonly #namespace: string;
  readonly #pocket: NumberPocket;
  readonly #runs = new Set<string>();

  constructor(archive: Archive, numbers: NumberSource, namespace: string) {
    this.#archive = archive;
    this.#namespace = namespace;
    this.#pocket = new NumberPocket(numbers);
  }

  /** How many runs the stored numbers come from. */
  get runsUsed(): number {
    return this.#runs.size;
  }

  /**
   * Stores the messages of the range that are not there yet.
   * @throws what `numbers.take` throws, and what `Archive.store` throws. Nothing of the range is stored then.
   */
  async import(range: Range): Promise<RangeResult> {
    const { found, unread } = await readRange(range);
    const problems: Problem[] = [...unread];
    const fresh: NewMessage[] = [];
    for (const message of found) {
      const key = keyOf(message);
      const known = this.#archive.find(key);
      if (known === undefined) fresh.push(await newMessage(message, key));
      const problem = known === undefined ? fresh.at(-1)?.problem : known.problem;
      if (typeof problem === "string") problems.push(problemOf(message, problem));
    }
    const stored = fresh.length === 0 ? 0 : await this.#store(fresh);
    return { stored, alreadyThere: found.length - stored, notStored: unread.length, problems };
  }

  async #store(fresh: readonly NewMessage[]): Promise<number> {
    const callNumbers = await this.#pocket.atHand(fresh.length);
    const storeId = this.#pocket.storeId;
    if (storeId === undefined)
      throw new Error("broken invariant: numbers were taken, and nobody knows from which store");
    const used = this.#archive.store(fresh, callNumbers, { storeId, namespace: this.#namespace });
    this.#pocket.markUsed(used.length);
    for (const callNumber of used) {
      const { version, run } = decodeCallNumber(callNumber);
      this.#runs.add(`${version}.${run}`);
    }
    return used.length;
  }
}

function keyOf({ source, byteOffset, raw }: FoundMessage): MessageKey {
  return { source, byteOffset, contentHash: createHash("sha256").update(raw).digest() };
}

async function newMessage(
  { number, fromLine, raw, quoted, problem }: FoundMessage,
  key: MessageKey,
): Promise<NewMessage> {
  const fields = await parseMessage(quoted ? unquoteFromLines(raw) : raw);
  const problems = [problem, fields.problem].filter((one) => one !== null);
  return { ...key, ...fields, number, fromLine, raw, problem: problems.length === 0 ? null : problems.join("; ") };
}

function problemOf({ source, number, byteOffset }: FoundMessage, reason: string): Problem {
  return { source, number, byteOffset, reason, stored: true };
}
