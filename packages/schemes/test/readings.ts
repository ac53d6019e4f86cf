/** What a scheme reads and writes, in the shape in which tests compare it. */
import type { Parsed, Reading, Scheme, Values } from "../src/index.js";

export function spellingsOf(scheme: Scheme, values: Values): Record<string, string> {
  return Object.fromEntries(scheme.spellings(values).map(({ name, text }) => [name, text]));
}

/** The values of a text that must match. */
export function fieldsOf(scheme: Scheme, text: string): Values {
  return mustMatch(scheme.parse(text)).values;
}

export function mustMatch(parsed: Parsed): Extract<Parsed, { matches: true }> {
  if (parsed.matches) return parsed;
  throw new Error(parsed.reason);
}

/** All that a text stands for, the first reading first. */
export function readingsOf(scheme: Scheme, text: string): readonly Reading[] {
  const parsed = scheme.parse(text);
  return parsed.matches ? [parsed, ...parsed.otherReadings] : [];
}

export function otherReading(scheme: Scheme, text: string, spelling: string): Reading | undefined {
  return readingsOf(scheme, text).find((reading) => reading.spelling === spelling);
}
