/**
 * The web framework, set up for unauthenticated clients: small bodies, types from zod, and requests that can be read in one way only.
 * A body is JSON in UTF-8 without broken bytes, without a key twice, and without a key that reaches for a prototype.
 */
import Fastify, { type FastifyInstance } from "fastify";
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import { type ErrorResponses, SAME_ORIGIN_HEADERS } from "./error-response.js";
import type { NodeServers } from "./node-servers.js";

/** Larger than any request of ours. */
const BODY_BYTES_MAX = 4096;

/** A request line holds a namespace and a typed call number. */
export const PARAMETER_LENGTH_MAX = 256;

/** Each string of a JSON text; with a colon after it, it is a key. */
const STRINGS_AND_COLONS = /"(?:[^"\\]|\\.)*"(\s*:)?/g;
const BYTE_ORDER_MARK = "\uFEFF";
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export type TypedApp = ReturnType<typeof newApp>;

export function newApp(errors: ErrorResponses, servers: NodeServers) {
  const app = Fastify({
    // The log has our events, each under its own name; a line for every request would drown them.
    logger: false,
    serverFactory: servers.create,
    // HEAD would do all the work of GET for no response body: only a route where that is nothing allows it.
    exposeHeadRoutes: false,
    // The servers respond to malformed requests.
    clientErrorHandler: () => {},
    bodyLimit: BODY_BYTES_MAX,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    // Our own hook responds with a code that clients know.
    return503OnClosing: false,
    requestIdHeader: false,
    // What the framework rejects before any route, such as a URL that can't be decoded. No hook has run.
    frameworkErrors: (error, request, reply) => {
      reply.headers(SAME_ORIGIN_HEADERS).header("cache-control", "no-store");
      void errors.handle(error, request, reply).then((body) => reply.send(body as never));
    },
  }).withTypeProvider<ZodTypeProvider>();
  acceptStrictJson(app);
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(errors.handle);
  return app;
}

/** Rejects a query where the route describes none: a mistyped one would be read as none. */
export function rejectUnknownQueries(app: TypedApp, errors: ErrorResponses): void {
  app.addHook("onRequest", (request, reply, done) => {
    const isDescribed = request.routeOptions.schema?.querystring !== undefined || request.is404;
    if (isDescribed || !request.url.includes("?")) done();
    else
      reply.send(
        errors.reject({ code: "invalid_request", message: "nothing is asked by a query here" }, request, reply),
      );
  });
}

type ParserMethods = "getDefaultJsonParser" | "removeAllContentTypeParsers" | "addContentTypeParser";

/** Also removes the framework's parser of plain text. */
function acceptStrictJson(app: Pick<FastifyInstance, ParserMethods>): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    let text: string;
    try {
      text = utf8.decode(body as Buffer);
    } catch {
      done(badRequest("the body is not UTF-8"), undefined);
      return;
    }
    // The framework would remove it, and another program would not.
    if (text.startsWith(BYTE_ORDER_MARK)) {
      done(badRequest("the body begins with a byte order mark"), undefined);
      return;
    }
    parse(request, text, (error, value: unknown) => {
      if (error !== null) done(error, undefined);
      else if (countKeys(value) !== countKeysInText(text))
        done(badRequest("the body is JSON with a key twice"), undefined);
      else done(null, value);
    });
  });
}

function countKeysInText(json: string): number {
  let count = 0;
  for (const [, colon] of json.matchAll(STRINGS_AND_COLONS)) if (colon !== undefined) count++;
  return count;
}

/** Of keys that came twice, parsing leaves one. */
function countKeys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const inner of Object.values(value)) count += countKeys(inner);
  return count;
}

function badRequest(message: string): Error {
  return Object.assign(new Error(message), { statusCode: 400 });
}
