/**
 * The call number in a pasted text: the text itself, or the URL of a page about it. Pure and without a dependency: the console and the
 * command line accept the same. A number that is found need not have been issued.
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
