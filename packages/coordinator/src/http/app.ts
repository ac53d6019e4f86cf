/** The web framework behind the gate, set up for strangers: small bodies, JSON with types from zod, no lines of its own. */
import Fastify from "fastify";
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import type { Refusals } from "./error-answer.js";
import { takeStrictJson } from "./json-body.js";
import { BODY_BYTES_MAX } from "./request-head.js";
import type { StrictGate } from "./strict-server.js";
import type { TlsServers } from "./tls-servers.js";

/** A request line holds a namespace and a typed call number: more is no request of ours. */
export const PARAMETER_LENGTH_MAX = 256;

export type TypedApp = ReturnType<typeof newApp>;

/** `tls`: makes its servers; without it they speak HTTP. */
export function newApp({ answerError }: Pick<Refusals, "answerError">, gate: StrictGate, tls?: TlsServers) {
  const app = Fastify({
    // The log holds our events, each under its own name; a line for every request would drown them.
    logger: false,
    serverFactory: (handler) => gate.serverFor(handler, tls?.createServer),
    // It would do all the work of GET for no answer: only a route where that is nothing says otherwise.
    exposeHeadRoutes: false,
    // The gate answers what is no request.
    clientErrorHandler: () => {},
    bodyLimit: BODY_BYTES_MAX,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    // Ours says the same with a code that clients know.
    return503OnClosing: false,
    // Whatever is open when the server closes has had its time: see untilNone.
    forceCloseConnections: true,
    requestIdHeader: false,
    // What the framework refuses before any route, an address that can't be decoded for one.
    frameworkErrors: (error, request, reply) => {
      void answerError(error, request, reply).then((answer) => reply.send(answer as never));
    },
  }).withTypeProvider<ZodTypeProvider>();
  takeStrictJson(app);
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  return app;
}
