/**
 * Authentication and permissions. Every route names the permission that it needs. A request is checked when its head has arrived, before
 * anything else of it is read, and again when its body is there.
 * A path with `:namespace` is about that namespace, every other path is about all of them.
 */
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

const ANONYMOUS: Principal = { tokenId: null, permissions: new Set(["public"]), namespaces: new Set() };

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
  authenticate(request: FastifyRequest): Principal | undefined;
  /**
   * Returns whether a principal of before would still be authenticated. Called when the whole request is there, and before each write to an
   * event stream.
   */
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
    const rejection = rejectionOf(request, authenticator);
    if (rejection === undefined && permissionFor(request) !== "public") onGranted(request, reply as never);
    done(rejection);
  });
  // A body may arrive long after its head, and a token may be revoked in between.
  app.addHook("preHandler", (request, _reply, done) => {
    const isAllowed = permissionFor(request) === "public" || authenticator.isValid(request.principal);
    done(isAllowed ? undefined : unauthorized());
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

function unauthorized(): CoordinatorError {
  return new CoordinatorError("unauthorized", "the request needs a token that this coordinator accepts");
}

function permissionFor({ routeOptions }: FastifyRequest): Permission {
  return routeOptions.config.permission ?? "public";
}

/** Sets the principal of the request. Undefined for a request that its permission allows. */
function rejectionOf(request: FastifyRequest, authenticator: Authenticator): CoordinatorError | undefined {
  const permission = permissionFor(request);
  const principal = authenticator.authenticate(request);
  request.principal = principal ?? ANONYMOUS;
  if (permission === "public") return undefined;
  if (principal === undefined) return unauthorized();
  const { isFiltered = false } = request.routeOptions.config;
  const { namespace } = (request.params ?? {}) as { namespace?: string };
  const isInReach =
    namespace === undefined ? isFiltered || principal.namespaces === "all" : canRead(principal, namespace);
  return isInReach && principal.permissions.has(permission) ? undefined : forbidden();
}
