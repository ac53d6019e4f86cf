/**
 * Bodies are JSON in UTF-8 that can be read in one way only: no broken bytes, no key twice, no key that reaches for a prototype.
 */
import type { FastifyInstance } from "fastify";

/** Each string of a JSON text; with a colon behind it, it is a key. */
const STRINGS_AND_COLONS = /"(?:[^"\\]|\\.)*"(\s*:)?/g;

const BYTE_ORDER_MARK = "\uFEFF";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

type ParserMethods = "getDefaultJsonParser" | "removeAllContentTypeParsers" | "addContentTypeParser";

/** JSON is all that is taken; the framework would also take plain text. */
export function takeStrictJson(app: Pick<FastifyInstance, ParserMethods>): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    let text: string;
    try {
      text = utf8.decode(body as Buffer);
    } catch {
      done(refused("the body is not UTF-8"), undefined);
      return;
    }
    // The framework would take it away, and another program would not.
    if (text.startsWith(BYTE_ORDER_MARK)) {
      done(refused("the body begins with a byte order mark"), undefined);
      return;
    }
    parse(request, text, (error, value: unknown) => {
      if (error !== null) done(error, undefined);
      else if (keyCountOf(value) !== keyCountIn(text)) done(refused("the body is JSON with a key twice"), undefined);
      else done(null, value);
    });
  });
}

/** Of valid JSON, as it was written. */
function keyCountIn(text: string): number {
  let count = 0;
  for (const [, colon] of text.matchAll(STRINGS_AND_COLONS)) if (colon !== undefined) count++;
  return count;
}

/** As it was understood: of keys that came twice one is left. */
function keyCountOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const inner of Object.values(value)) count += keyCountOf(inner);
  return count;
}

function refused(message: string): Error {
  return Object.assign(new Error(message), { statusCode: 400 });
}
