/** A request takes a slot of its kind before its route runs, and frees it when its response is closed. */
import type { ConcurrencyLimits } from "../limits/concurrency-limits.js";
import type { TypedApp } from "./app.js";
import { askerOf } from "./asker.js";
import type { Access } from "./caller.js";
import { whenClosed } from "./when-closed.js";

type Kind = keyof ConcurrencyLimits | "none";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whose slots a request takes; `none`: it takes none. Default: by who may ask. */
    readonly slots?: Kind;
  }
}

/** What anybody may ask costs the store little or nothing, where the route does not name another kind. */
const KIND_OF: Readonly<Record<Access, Kind>> = {
  public: "none",
  lease: "leases",
  read: "reads",
  change: "reads",
  settings: "reads",
};

/** Rejects what exceeds the limits with `overloaded`. Add it behind the hooks that authenticate the caller. */
export function limitConcurrency(app: TypedApp, limits: ConcurrencyLimits): void {
  // When the body is there: a client that sends it slowly would hold a slot.
  app.addHook("preHandler", (request, reply, done) => {
    const { access = "public", slots = KIND_OF[access] } = request.routeOptions.config;
    try {
      if (slots !== "none") whenClosed(reply.raw, limits[slots].take(askerOf(request)));
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  });
}
