/** Each character of Unicode, as the unit of a text. fast-check's own "binary" keeps a table of them all: 85 MB in every process. */
import fc from "fast-check";

const SURROGATES_FROM = 0xd800;
const SURROGATE_COUNT = 0x800;

export const anyCharacter = fc
  .nat({ max: 0x10_ff_ff - SURROGATE_COUNT })
  .map((place) => String.fromCodePoint(place < SURROGATES_FROM ? place : place + SURROGATE_COUNT));
