/** The web framework, set up for unauthenticated clients: small bodies, JSON with types from zod, no log lines of its own. */
import Fastify from "fastify";
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import type { Refusals } from "./error-response.js";
import type { NodeServers } from "./node-servers.js";
import { FOR_OWN_PAGES } from "./own-page-headers.js";
import { takeStrictJson } from "./strict-requests.js";

/** Larger than any request of ours. */
const BODY_BYTES_MAX = 4096;

/** A request line holds a namespace and a typed call number: more is no request of ours. */
export const PARAMETER_LENGTH_MAX = 256;

export type TypedApp = ReturnType<typeof newApp>;

export function newApp({ answerError }: Pick<Refusals, "answerError">, servers: NodeServers) {
  const app = Fastify({
    // The log holds our events, each under its own name; a line for every request would drown them.
    logger: false,
    serverFactory: servers.create,
    // It would do all the work of GET for no answer: only a route where that is nothing says otherwise.
    exposeHeadRoutes: false,
    // Each of these servers answers what is no request.
    clientErrorHandler: () => {},
    bodyLimit: BODY_BYTES_MAX,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    // Ours says the same with a code that clients know.
    return503OnClosing: false,
    requestIdHeader: false,
    // What the framework refuses before any route, an address that can't be decoded for one.
    frameworkErrors: (error, request, reply) => {
      // No hook has run.
      reply.headers(FOR_OWN_PAGES).header("cache-control", "no-store");
      void answerError(error, request, reply).then((answer) => reply.send(answer as never));
    },
  }).withTypeProvider<ZodTypeProvider>();
  takeStrictJson(app);
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  return app;
}
