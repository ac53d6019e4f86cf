/**
 * What is read of an answer of Redis: words and whole numbers where our scripts put them. JavaScript would make a number of anything,
 * and a comparison with what is no number is never true: it would let everything pass. Pure.
 */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { RECEIPT_KEY_PATTERN } from "../../guard/record.js";
import { parseStoreId } from "../../store-id.js";
import type { NamespaceRecord } from "../store.js";

/** The words of an answer; undefined when it is no list of words. */
export function wordsIn(answer: unknown): readonly string[] | undefined {
  return Array.isArray(answer) && answer.every((word) => typeof word === "string") ? answer : undefined;
}

const WHOLE = /^(?:0|[1-9]\d{0,15})$/;

/** A whole number as our scripts write it, up to `max`; undefined for every other word. */
export function wholeIn(word: string | undefined, max = Number.MAX_SAFE_INTEGER): number | undefined {
  if (word === undefined || !WHOLE.test(word)) return undefined;
  const number = Number(word);
  return number <= max ? number : undefined;
}

/** The record in an answer of lua/read.lua, which has checked it; undefined for what is none. */
export function recordIn(answer: unknown): Omit<NamespaceRecord, "namespace"> | undefined {
  const [storeId = "", ...words] = wordsIn(answer) ?? [];
  const id = parseStoreId(storeId);
  const version = wholeIn(words[0], VERSION_MAX);
  const highWaterMark = wholeIn(words[1], RUN_MAX);
  const changedAtMs = wholeIn(words[2]);
  const generation = wholeIn(words[3]);
  const phase = wholeIn(words[4]);
  const nodeCount = wholeIn(words[5]);
  const [receiptKey, seal] = words.slice(6);
  if (
    id === undefined ||
    version === undefined ||
    highWaterMark === undefined ||
    changedAtMs === undefined ||
    generation === undefined ||
    phase === undefined ||
    nodeCount === undefined ||
    receiptKey === undefined ||
    !RECEIPT_KEY_PATTERN.test(receiptKey) ||
    seal === undefined
  )
    return undefined;
  const { firstVersion, firstRun } = id;
  return {
    storeId,
    version,
    firstVersion,
    firstRun,
    highWaterMark,
    changedAtMs,
    generation,
    phase,
    nodeCount,
    receiptKey,
    seal,
  };
}
