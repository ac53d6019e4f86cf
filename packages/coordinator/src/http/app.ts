/** The web framework, set up for unauthenticated clients: small bodies of JSON in UTF-8, checked by zod schemas. */
import Fastify, { type FastifyInstance } from "fastify";
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import { type ErrorResponses, SAME_ORIGIN_HEADERS } from "./error-response.js";
import type { NodeServers } from "./node-servers.js";

/** Larger than any request of ours. */
const BODY_BYTES_MAX = 4096;

/** A request line holds a namespace and a typed call number. */
export const PARAMETER_LENGTH_MAX = 256;

const utf8 = new TextDecoder("utf-8", { fatal: true });

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
  acceptJsonOnly(app);
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

/** Accepts JSON in UTF-8 and nothing else: the framework would also accept plain text, and replace broken bytes. */
function acceptJsonOnly(app: Pick<FastifyInstance, ParserMethods>): void {
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
    parse(request, text, done);
  });
}

function badRequest(message: string): Error {
  return Object.assign(new Error(message), { statusCode: 400 });
}
