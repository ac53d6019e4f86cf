/** The web framework, set up for strangers: small bodies, JSON with types from zod, no poisoned keys, no lines of its own. */
import Fastify, { type FastifyServerFactory } from "fastify";
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import type { Refusals } from "./error-answer.js";
import type { TlsServers } from "./tls-servers.js";

/** Larger than any request of ours, smaller than anything that hurts. */
const BODY_LIMIT_BYTES = 4096;
/** A request line holds a namespace and a typed call number: more is no request of ours. */
export const PARAMETER_LENGTH_MAX = 256;

export type TypedApp = ReturnType<typeof newApp>;

/** `tls`: makes its servers; without it they speak HTTP. */
export function newApp({ answerError }: Pick<Refusals, "answerError">, tls?: TlsServers) {
  const app = Fastify({
    ...(tls === undefined ? {} : { serverFactory: serverFactoryOf(tls) }),
    // The log holds our events, each under its own name; a line for every request would drown them.
    logger: false,
    bodyLimit: BODY_LIMIT_BYTES,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    // Ours says the same with a code that clients know.
    return503OnClosing: false,
    // Whatever is open when the server closes has had its time: see untilNone.
    forceCloseConnections: true,
    onProtoPoisoning: "error",
    onConstructorPoisoning: "error",
    requestIdHeader: false,
    // What the framework refuses before any route, an address that can't be decoded for one.
    frameworkErrors: (error, request, reply) => {
      void answerError(error, request, reply).then((answer) => reply.send(answer as never));
    },
  }).withTypeProvider<ZodTypeProvider>();
  // Only JSON is spoken; the framework would also take plain text.
  app.removeContentTypeParser("text/plain");
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  return app;
}

/** The framework sets up only servers that it makes itself. */
function serverFactoryOf(tls: TlsServers): FastifyServerFactory {
  return (handler, options) => tls.createServer({ keepAliveTimeout: options["keepAliveTimeout"] as number }, handler);
}
