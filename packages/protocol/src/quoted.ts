/** Untrusted values as text for messages, which end in terminals and logs. */

/** Quoted, cut short and without control characters. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text).replace(
    /[\p{C}\u2028\u2029]/gu,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  );
}

/** Describes a value of any type: a string quoted, of other values no more than the type. */
export function describe(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || value === null || value === undefined) return String(value);
  return `a value of type ${typeof value}`;
}
