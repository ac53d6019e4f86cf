/** A request takes a slot of its kind before its route runs, and frees it when its response is closed. */
import type { FastifyRequest } from "fastify";
import type { ConcurrencyLimits } from "../limits/concurrency-limits.js";
import type { TypedApp } from "./app.js";
import type { Permission, Principal } from "./auth.js";

type Kind = keyof ConcurrencyLimits | "none";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whose slots a request takes; `none`: it takes none. Default: by the permission of the route. */
    readonly slots?: Kind;
  }
}

/** Public requests cost the store little or nothing, where the route does not name another kind. */
const KIND_OF: Readonly<Record<Permission, Kind>> = {
  public: "none",
  lease: "leases",
  read: "reads",
  change: "reads",
  settings: "reads",
};

/** Rejects what exceeds the limits with `overloaded`. Call it after `registerAuth`. */
export function limitConcurrency(app: TypedApp, limits: ConcurrencyLimits): void {
  // When the body is there: a client that sends it slowly would hold a slot.
  app.addHook("preHandler", (request, reply, done) => {
    const { permission = "public", slots = KIND_OF[permission] } = request.routeOptions.config;
    try {
      if (slots !== "none") {
        const free = limits[slots].take(clientKey(request));
        if (reply.raw.closed) free();
        else reply.raw.once("close", free);
      }
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  });
}

/** Whose slots a request takes: those of its token, or else those of its address. */
export function clientKey({ principal, ip }: Pick<FastifyRequest, "principal" | "ip">): string {
  // A closed connection has no address.
  return (principal as Principal | null)?.tokenId ?? ip ?? "";
}
