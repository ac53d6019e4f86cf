/** What the page of a message that is not here says: which one may have been meant, and whether there ever was such a message. */
import { callNumberIn, correctionsOf, DEFAULT_NAMESPACE, pathOf, UnclearTextError } from "@callnumber/protocol/api";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import * as z from "zod";
import { printable } from "../terminal.js";
import type { ArchiveReader, MessageRow } from "./archive-reader.js";

const SUGGESTIONS_MAX = 5;
const TIMEOUT_MS = 2_000;
/** More are answered without asking: a crawler must not become a load on the coordinator. */
const REQUESTS_MAX = 4;
const answerSchema = z.object({ canExist: z.boolean() });

export class MissingMessages {
  #requestCount = 0;

  constructor(
    private readonly archive: ArchiveReader,
    private readonly coordinator: string | undefined,
  ) {}

  async explain(text: string): Promise<{ readonly explanation: string; readonly suggestions: readonly MessageRow[] }> {
    const suggestions = this.#suggestionsFor(text).flatMap((callNumber) => this.archive.find(callNumber) ?? []);
    try {
      decodeCallNumber(text);
    } catch (error) {
      if (!(error instanceof CallNumberError)) throw error;
      return { explanation: `No message can have this number: ${printable(error.message, 200)}.`, suggestions };
    }
    const explanation = (await this.#isImpossible(text))
      ? `There never was a message ${text}. Please check the address: upper and lower case differ.`
      : `The message ${text} is not in this archive. It may have been removed, or may not have arrived yet.`;
    return { explanation, suggestions };
  }

  #suggestionsFor(text: string): readonly string[] {
    const corrections = correctionsOf(text, ({ callNumber }) => this.archive.has(callNumber), SUGGESTIONS_MAX);
    return [...new Set([...candidatesIn(text), ...corrections.map(({ callNumber }) => callNumber)])].slice(
      0,
      SUGGESTIONS_MAX,
    );
  }

  /** Whether the coordinator knows that the number can't exist. Anything else than a plain no is unknown. */
  async #isImpossible(callNumber: string): Promise<boolean> {
    if (this.coordinator === undefined || this.#requestCount >= REQUESTS_MAX) return false;
    this.#requestCount++;
    try {
      const namespace = this.archive.fact("namespace") ?? DEFAULT_NAMESPACE;
      const url = new URL(pathOf("publicCallNumber", { namespace, callNumber }), this.coordinator);
      const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      return response.ok && !answerSchema.parse(await response.json()).canExist;
    } catch {
      return false;
    } finally {
      this.#requestCount--;
    }
  }
}

function candidatesIn(text: string): readonly string[] {
  try {
    return [callNumberIn(text) ?? text];
  } catch (error) {
    if (error instanceof UnclearTextError) return error.candidates;
    throw error;
  }
}
