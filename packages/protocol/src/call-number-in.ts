/**
 * The call number in what people paste: itself, or the address of a page about it. Pure; has no dependency, so that a page in a
 * browser asks as a terminal does. Whether anybody made the number is another question.
 */

/** Eight base62 characters. Some of them are no call numbers: the codec knows which. */
const SHAPE = /^[0-9A-Za-z]{8}$/;
const SCHEME_AND_HOST = /^\s*[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

/**
 * A text of eight base62 characters as it is; of a URL or path, the last segment that has eight of them once its percent-escapes
 * are undone. Query, fragment and host are skipped. Null when there is none: then the text is a mistake that
 * should be shown as it was typed.
 */
export function callNumberIn(text: string): string | null {
  if (SHAPE.test(text)) return text;
  if (!text.includes("/")) return null;
  const [path = ""] = text.replace(SCHEME_AND_HOST, "").split(/[?#]/, 1);
  const segments = path.split("/").map((segment) => unescaped(segment).trim());
  return segments.findLast((segment) => SHAPE.test(segment)) ?? null;
}

/** A segment with a stray percent sign stays as it is. */
function unescaped(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
