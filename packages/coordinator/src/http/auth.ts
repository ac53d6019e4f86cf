/**
 * Who may ask at each route: written at the route, and at every route; checked before anything of the request is read but its head, and once
 * more when all of it is there.
 * A path with `:namespace` is about that one namespace, every other path about all of them.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { TypedApp } from "./app.js";
import { type Access, ANYBODY, type Caller, maySee, STRANGER } from "./caller.js";
import type { Refusals } from "./error-response.js";

declare module "fastify" {
  interface FastifyContextConfig {
    readonly access?: Access;
    /** The route itself tells each caller of their own namespaces only: also those with some may ask. */
    readonly isFiltered?: boolean;
  }
  interface FastifyRequest {
    caller: Caller;
  }
}

/** Knows callers by what their requests bear. */
export interface Door {
  /** Undefined when nobody is known by it. */
  callerOf(request: FastifyRequest): Caller | undefined;
  /**
   * Whether a caller that was let in earlier still would be: asked when the whole request is there, and before each word of an answer that has
   * no end.
   */
  knows(caller: Caller): boolean;
}

export const OPEN_DOOR: Door = { callerOf: () => ANYBODY, knows: () => true };

/** What one is told whose token is known. */
export const OUT_OF_REACH = "the token is not good for this: another role or another namespace is needed";

export interface Keeping {
  readonly door: Door;
  readonly refusals: Refusals;
}

/** From here on no route is added that does not say who may ask, and no request reaches one that may not. */
export function keepDoor(app: TypedApp, { door, refusals }: Keeping): void {
  app.decorateRequest("caller", null as never);
  app.addHook("onRoute", ({ method, url, config }) => {
    if (config?.access === undefined) throw new Error(`broken invariant: ${method} ${url} does not say who may ask`);
  });
  app.addHook("onRequest", (request, reply, done) => {
    const refusal = refusalOf(request, reply, door);
    if (refusal === undefined) done();
    else reply.send(refusals.refuse(refusal, request, reply));
  });
  // A body may come long after its head.
  app.addHook("preHandler", (request, reply, done) => {
    if (accessOf(request) === "public" || door.knows(request.caller)) done();
    else reply.send(refusals.refuse(unauthorized(reply), request, reply));
  });
}

function accessOf({ routeOptions }: FastifyRequest): Access {
  return routeOptions.config.access ?? "public";
}

type Refusal = Parameters<Refusals["refuse"]>[0];

function unauthorized(reply: FastifyReply): Refusal {
  reply.header("www-authenticate", "Bearer");
  return { code: "unauthorized", message: "a token is needed that this coordinator knows" };
}

function refusalOf(request: FastifyRequest, reply: FastifyReply, door: Door): Refusal | undefined {
  const { isFiltered = false } = request.routeOptions.config;
  const access = accessOf(request);
  if (access === "public") {
    request.caller = door.callerOf(request) ?? STRANGER;
    return undefined;
  }
  const caller = door.callerOf(request);
  if (caller === undefined) return unauthorized(reply);
  request.caller = caller;
  const { namespace } = (request.params ?? {}) as { namespace?: string };
  const isInReach = namespace === undefined ? isFiltered || caller.namespaces === "all" : maySee(caller, namespace);
  if (isInReach && caller.accesses.has(access)) return undefined;
  return { code: "forbidden", message: OUT_OF_REACH };
}
