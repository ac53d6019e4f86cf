/** The web framework, set up for unauthenticated clients: routes that read, whose parameters are checked by zod schemas. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { ROUTES } from "@callnumber/protocol/api";
import { SCHEMA_WORDS } from "@callnumber/protocol/schemas";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyTypeProvider,
} from "fastify";
import type * as z from "zod";
import { CoordinatorError } from "../errors.js";
import { errorResponse, invalidRequest, type LogError, shownPath } from "./error-response.js";

/** A request line holds a namespace and a typed call number. */
const PARAMETER_LENGTH_MAX = 256;

/** Types what a handler takes and returns by the schemas of its route. */
export interface ZodTypeProvider extends FastifyTypeProvider {
  readonly validator: this["schema"] extends z.ZodType ? z.output<this["schema"]> : unknown;
  readonly serializer: this["schema"] extends z.ZodType ? z.output<this["schema"]> : unknown;
}

/** Named, since the compiler would describe it by a namespace that some module resolutions do not have. */
export type TypedApp = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>;

/** Its own server never listens: our servers pass their requests to its `routing`. */
export function newApp(logError: LogError): TypedApp {
  const sendError = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const { status, headers, body } = errorResponse(logError(error, request));
    reply.code(status).headers(headers).send(body);
  };
  const app = Fastify({
    // The log has our events, each under its own name; a line for every request would drown them.
    logger: false,
    // HEAD would do all the work of GET for no response body: only a route where that is nothing allows it.
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    // Our own hook responds with a code that clients know.
    return503OnClosing: false,
    requestIdHeader: false,
    // What the framework rejects before any route, such as a URL that can't be decoded.
    frameworkErrors: (error, request, reply) => sendError(error, request, reply as never),
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(({ schema, httpPart = "" }) => (value) => {
    const { data, error } = (schema as z.ZodType).safeParse(value, SCHEMA_WORDS);
    return error === undefined ? { value: data } : { error: invalidRequest(httpPart, error) };
  });
  const serializer = (schema: z.ZodType) => (value: unknown) => JSON.stringify(schema.parse(value));
  app.setSerializerCompiler(({ schema }) => serializer(schema as z.ZodType));
  app.setErrorHandler(sendError);
  return app;
}

/** Rejects a query where the route describes none: a mistyped one would be read as none. */
export function rejectUnknownQueries(app: TypedApp): void {
  app.addHook("onRequest", (request, _reply, done) => {
    const isDescribed = request.routeOptions.schema?.querystring !== undefined || request.is404;
    if (isDescribed || !request.url.includes("?")) done();
    else done(new CoordinatorError("invalid_request", "this route has no query"));
  });
}

/**
 * Returns a function that rejects what no route takes: an unknown path, and a wrong method on a known one, with the right ones. Call this before
 * the routes are registered, so that it knows them, and the function after the other hooks.
 */
export function unknownRouteRejection(app: TypedApp): () => void {
  const routes = new Map<string, { readonly path: RegExp; readonly methods: string[] }>();
  app.addHook("onRoute", ({ url, method }) => {
    const path = new RegExp(`^${url.replaceAll(".", "\\.").replace(/:\w+/g, "[^/]+")}$`);
    const route = routes.get(url) ?? { path, methods: [] };
    route.methods.push(...[method].flat());
    routes.set(url, route);
  });
  const allowedAt = (path: string) => [...routes.values()].find((route) => route.path.test(path))?.methods;
  const rejectionOf = ({ method, url }: FastifyRequest, reply: FastifyReply) => {
    const allowed = allowedAt(url.replace(/\?.*/s, ""))?.join(", ");
    if (allowed === undefined) {
      const message = `there is no route ${method} ${shownPath(url)}; ${ROUTES.openApi} lists all routes`;
      return new CoordinatorError("not_found", message);
    }
    reply.header("allow", allowed);
    return new CoordinatorError("method_not_allowed", `this route does not allow ${method}; it allows ${allowed}`);
  };
  // Before the body is read or checked: whatever it holds, the method is wrong.
  return () => {
    app.addHook("onRequest", (request, reply, done) => {
      done(request.is404 ? rejectionOf(request, reply) : undefined);
    });
  };
}
