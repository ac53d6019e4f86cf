/**
 * A refusal as a step gives it: one leading word and what stands behind it. The words are the same in the decisions here and in
 * the scripts of lua/; what each means for a caller stands in refusals.ts.
 */
import type { ScriptWord } from "./refusals.js";

export interface Refusal {
  readonly word: ScriptWord;
  readonly detail: string;
}

export function refusal(word: ScriptWord, detail: string | number = ""): Refusal {
  return { word, detail: String(detail) };
}

export function isRefusal(answer: object): answer is Refusal {
  return "word" in answer;
}
