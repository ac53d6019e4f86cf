/**
 * Whether any call number was made twice: exactly, one bit for each number that can be, not a sample. Reads what importers wrote,
 * eight characters after the other, with the project's own codec, and knows nothing of runs that were leased.
 * Guarantees: G9 (docs/guarantees.md).
 */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { CALL_NUMBER_LENGTH, decodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";

/** The first few say what is wrong; a million of them say no more. */
const FINDINGS_MAX = 5;

interface Bits {
  readonly ledgerId: number;
  readonly ofSequences: Uint8Array;
}

export class CallNumberCheck {
  readonly #places = new Map<string, Map<number, Uint8Array>>();
  readonly #findings: string[] = [];
  #count = 0;
  #repeatCount = 0;
  #malformedCount = 0;

  /** Numbers checked, repeats included. */
  get count(): number {
    return this.#count;
  }

  get repeatCount(): number {
    return this.#repeatCount;
  }

  /** Eight characters that encode no call number. */
  get malformedCount(): number {
    return this.#malformedCount;
  }

  /** How many runs the numbers came from. */
  get runCount(): number {
    return [...this.#places.values()].reduce((sum, runs) => sum + runs.size, 0);
  }

  /** The first few numbers that were wrong, for people. */
  get findings(): readonly string[] {
    return this.#findings;
  }

  /**
   * What one importer writes: give it each piece as it comes, cut wherever the pipe cut it. The last number of an importer that was
   * killed may stay incomplete: then no caller has got it.
   * @param place where a number may be only once: the id of the store, which each namespace has of its own.
   */
  reader(place: string, importer: string): (piece: Buffer) => void {
    const runs = this.#places.get(place) ?? new Map<number, Uint8Array>();
    this.#places.set(place, runs);
    let begun: Buffer = Buffer.alloc(0);
    return (piece) => {
      const bytes = begun.length === 0 ? piece : Buffer.concat([begun, piece]);
      const end = bytes.length - (bytes.length % CALL_NUMBER_LENGTH);
      this.#checkAll(runs, bytes.toString("latin1", 0, end), importer);
      begun = bytes.subarray(end);
    };
  }

  #checkAll(runs: Map<number, Uint8Array>, text: string, importer: string): void {
    let last: Bits | undefined;
    for (let at = 0; at < text.length; at += CALL_NUMBER_LENGTH) {
      const callNumber = text.slice(at, at + CALL_NUMBER_LENGTH);
      this.#count++;
      try {
        const { version, run, sequence } = decodeCallNumber(callNumber);
        const ledgerId = ledgerIdOf(version, run);
        if (last?.ledgerId !== ledgerId) last = { ledgerId, ofSequences: bitsOf(runs, ledgerId) };
        const bit = 1 << (sequence & 7);
        const before = last.ofSequences[sequence >> 3] as number;
        if ((before & bit) !== 0) {
          this.#repeatCount++;
          this.#note(`${callNumber} (run ${run}, sequence ${sequence}) was made again, by ${importer}`);
        }
        last.ofSequences[sequence >> 3] = before | bit;
      } catch (error) {
        this.#malformedCount++;
        this.#note(`${importer} wrote what is not a call number: ${(error as Error).message}`);
      }
    }
  }

  #note(text: string): void {
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push(text);
  }
}

function bitsOf(runs: Map<number, Uint8Array>, ledgerId: number): Uint8Array {
  const known = runs.get(ledgerId);
  if (known !== undefined) return known;
  const bits = new Uint8Array(SEQUENCE_COUNT / 8);
  runs.set(ledgerId, bits);
  return bits;
}
