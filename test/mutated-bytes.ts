/** Bytes made wrong: for properties of what reads untrusted input. */
import fc from "fast-check";

/** One of the texts with up to three places cut out or replaced: by a word, by any two bytes or by nothing. */
export function mutatedBytes(texts: readonly (string | Buffer)[], words: readonly string[]): fc.Arbitrary<Buffer> {
  const word = fc.oneof(fc.constantFrom("", ...words), fc.uint8Array({ maxLength: 2 }));
  const edit = fc.record({ at: fc.nat(), length: fc.oneof(fc.constant(0), fc.nat(8), fc.nat(64)), word });
  const edits = fc.array(edit, { minLength: 1, maxLength: 3 });
  return fc.tuple(fc.constantFrom(...texts), edits).map(([text, all]) =>
    all.reduce((bytes, { at, length, word }) => {
      const begin = at % (bytes.length + 1);
      return Buffer.concat([bytes.subarray(0, begin), Buffer.from(word), bytes.subarray(begin + length)]);
    }, Buffer.from(text)),
  );
}
