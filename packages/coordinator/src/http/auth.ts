/**
 * Authentication and permissions. Every route names the permission that it needs. A request is checked when its head has arrived, before
 * anything else of it is read.
 * A path with `:namespace` is about that namespace, every other path is about all of them.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { CoordinatorError } from "../errors.js";
import type { TypedApp } from "./app.js";

/** Roles of tokens. `lease`: an importer · `read`: reads · `operator`: reads, also how the coordinator was started. */
export const ROLES = ["lease", "read", "operator"] as const;
export type Role = (typeof ROLES)[number];

/**
 * `public`: every client · `lease`: leases runs and reports on them · `read`: reads · `settings`: reads how the coordinator was
 * started.
 */
export type Permission = "public" | "lease" | "read" | "settings";

/** The client behind a request, as far as its token identifies it. */
export interface Principal {
  /** First eight hex digits of the SHA-256 of the token; null where no token is required. */
  readonly tokenId: string | null;
  readonly permissions: ReadonlySet<Permission>;
  readonly namespaces: ReadonlySet<string> | "all";
}

/** No more than the work of each role needs: a reader discards no run, and a stolen importer's token shows nothing. */
export const PERMISSIONS_OF: Readonly<Record<Role, ReadonlySet<Permission>>> = {
  lease: new Set(["public", "lease"]),
  read: new Set(["public", "read"]),
  operator: new Set(["public", "read", "settings"]),
};

/** Every client, where no token is required. */
export const UNRESTRICTED: Principal = {
  tokenId: null,
  permissions: new Set(["public", "lease", "read", "settings"]),
  namespaces: "all",
};

/** A client without a valid token. */
export const ANONYMOUS: Principal = { tokenId: null, permissions: new Set(["public"]), namespaces: new Set() };

declare module "fastify" {
  interface FastifyContextConfig {
    readonly permission?: Permission;
    /** The route itself filters its response by the namespaces of the client: clients with some of them may call it, too. */
    readonly isFiltered?: boolean;
  }
  interface FastifyRequest {
    /** Unset for a request that was rejected before authentication, and for the console's files. */
    principal: Principal;
  }
}

/** Decides which requests are from whom, and what they may do. */
export interface Authenticator {
  /** Returns undefined for a request without exactly one valid token. */
  authenticate(request: IncomingMessage): Principal | undefined;
  /** Returns whether a principal of before would still be authenticated. Called when a body is there, and before each write to an event stream. */
  isValid(principal: Principal): boolean;
}

/** Requires no token. */
export const NO_AUTH: Authenticator = { authenticate: () => UNRESTRICTED, isValid: () => true };

/**
 * From here on every route must name its permission, and no request without it reaches one. `onGranted` is called with each request that has a
 * permission which not every client has.
 */
export function registerAuth(
  app: TypedApp,
  authenticator: Authenticator,
  onGranted: (request: FastifyRequest, reply: FastifyReply) => void,
): void {
  app.decorateRequest("principal", null as never);
  app.addHook("onRoute", ({ method, url, config }) => {
    if (config?.permission === undefined) throw new Error(`broken invariant: ${method} ${url} names no permission`);
  });
  app.addHook("onRequest", (request, reply, done) => {
    const { permission = "public", isFiltered } = request.routeOptions.config;
    const { namespace } = (request.params ?? {}) as { namespace?: string };
    request.principal = authenticator.authenticate(request.raw) ?? ANONYMOUS;
    const rejection = rejectionOf(request.principal, { permission, namespace, isFiltered });
    if (rejection === undefined && permission !== "public") onGranted(request, reply as never);
    done(rejection);
  });
}

/** Returns whether `GET /v1/settings` is open to the client. */
export function canReadSettings(principal: Principal | null | undefined): boolean {
  return principal?.namespaces === "all" && principal.permissions.has("settings");
}

export function canRead({ namespaces }: Principal, namespace: string): boolean {
  return namespaces === "all" || namespaces.has(namespace);
}

export function forbidden(): CoordinatorError {
  const message = "the token does not grant access to this: another role or another namespace is needed";
  return new CoordinatorError("forbidden", message);
}

export function unauthorized(): CoordinatorError {
  return new CoordinatorError("unauthorized", "the request needs a token that this coordinator accepts");
}

/** What a request is about. */
interface Wanted {
  readonly permission: Permission;
  /** Undefined: all of them. */
  readonly namespace: string | undefined;
  readonly isFiltered?: boolean | undefined;
}

/** Returns why the client may not have it; undefined when it may. */
export function rejectionOf(principal: Principal, wanted: Wanted): CoordinatorError | undefined {
  const { permission, namespace, isFiltered = false } = wanted;
  if (permission === "public") return undefined;
  if (principal === ANONYMOUS) return unauthorized();
  const isInReach =
    namespace === undefined ? isFiltered || principal.namespaces === "all" : canRead(principal, namespace);
  return isInReach && principal.permissions.has(permission) ? undefined : forbidden();
}
