/**
 * The console's cookie. A script can't read it, no other site's page makes a browser send it, and it ends with the session. Cookies
 * belong to a host and not to a port, so its name bears the port: two coordinators on one host don't sign each other out. Pure.
 */
import type { FastifyRequest } from "fastify";
import type { PageScheme } from "./own-page.js";
import { SESSION_AGE_MAX_MS } from "./sessions.js";

/** Nobody but this host, over TLS, can set a cookie with this prefix: browsers see to that. */
const OVER_TLS = "__Host-";
const NAME = "callnumber-session";
/** Whoever shares the host can add cookies of the same name; so many are looked at. */
const LOOKED_AT_COUNT_MAX = 4;

export interface FoundCookie {
  readonly secret: string;
  /** Of the pages that it was set for. */
  readonly scheme: PageScheme;
}

/** `Set-Cookie` for a session that a page of that scheme began: a proxy in front may speak TLS for us. */
export function sessionCookie(request: FastifyRequest, scheme: PageScheme, secret: string): string {
  return cookie(request, scheme, secret, SESSION_AGE_MAX_MS / 1_000);
}

export function endedCookie(request: FastifyRequest, scheme: PageScheme): string {
  return cookie(request, scheme, "", 0);
}

/** Over a connection of our own TLS only those that came over TLS. */
export function sessionCookiesIn(request: FastifyRequest): readonly FoundCookie[] {
  const pairs = (request.headers.cookie ?? "").split(";").map((pair) => pair.trim());
  const found = (scheme: PageScheme) => {
    const beginning = `${nameOf(request, scheme)}=`;
    return pairs
      .filter((pair) => pair.startsWith(beginning))
      .map((pair) => ({ secret: pair.slice(beginning.length), scheme }))
      .slice(0, LOOKED_AT_COUNT_MAX);
  };
  return [...found("https:"), ...(request.protocol === "https" ? [] : found("http:"))];
}

function cookie(request: FastifyRequest, scheme: PageScheme, value: string, maxAgeSeconds: number): string {
  const secure = scheme === "https:" ? "; Secure" : "";
  return `${nameOf(request, scheme)}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`;
}

function nameOf({ socket }: FastifyRequest, scheme: PageScheme): string {
  return `${scheme === "https:" ? OVER_TLS : ""}${NAME}-${socket.localPort}`;
}
