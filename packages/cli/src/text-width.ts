/** How many columns of a terminal a text takes, and the beginning of it that fits. Holders call themselves in any script. */

/** Made for the first text that is not all ASCII: most commands print none, and it takes them long to load. */
let segmenter: Intl.Segmenter | undefined;
/** Two columns each, in every terminal: East Asian Wide and Fullwidth of Unicode, and emoji. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u;
const ASCII = /^[ -~]*$/;

export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of lettersOf(text)) width += letterWidth(segment);
  return width;
}

/** The text, or as much of its beginning as fits with an ellipsis behind it. `width` is 1 at least. */
export function shortened(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = "";
  let left = width - 1;
  for (const { segment } of lettersOf(text)) {
    left -= letterWidth(segment);
    if (left < 0) break;
    kept += segment;
  }
  return `${kept}…`;
}

function letterWidth(letter: string): number {
  return WIDE.test(letter) ? 2 : 1;
}

function lettersOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}
