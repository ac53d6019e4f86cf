/** A colour for each namespace, from its name: the same on every screen, and nobody has to choose. */

/** Hues far enough from the red and amber of alarms to be taken for neither. */
const FIRST_HUE = 130;
const HUE_COUNT = 215;

/** 130 to 344, for `oklch()`; lightness and chroma stand in the style sheet, so that contrast is the same for every name. */
export function hueOf(namespace: string): number {
  let hash = 2_166_136_261;
  for (const character of namespace) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619) >>> 0;
  // The low bits of short, similar names are alike; a second mixing keeps "lists" and "list" apart.
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_507) >>> 0;
  return FIRST_HUE + (((hash ^ (hash >>> 13)) >>> 0) % HUE_COUNT);
}
