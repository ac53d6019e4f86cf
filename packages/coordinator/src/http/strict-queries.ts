/** A query is taken only where a route says what may stand in it: a mistyped one would be read as none. */
import type { TypedApp } from "./app.js";
import type { Refusals } from "./error-response.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whatever stands in the query changes nothing: for files. */
    readonly ignoresQuery?: boolean;
  }
}

export function refuseStrayQueries(app: TypedApp, refusals: Refusals): void {
  app.addHook("onRequest", (request, reply, done) => {
    const { schema, config } = request.routeOptions;
    const isTaken = config.ignoresQuery || schema?.querystring !== undefined || request.is404;
    if (isTaken || !request.url.includes("?")) {
      done();
      return;
    }
    reply.send(
      refusals.refuse({ code: "invalid_request", message: "nothing is asked by a query here" }, request, reply),
    );
  });
}
