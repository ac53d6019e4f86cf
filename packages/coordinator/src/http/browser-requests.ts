/**
 * What browsers may request. Requests of pages of other sites are rejected: a browser has whatever access its machine has; where no token
 * is required, that is all. Programs send none of the headers below.
 */

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { ROUTES } from "@callnumber/protocol/api";
import { CoordinatorError } from "../errors.js";
import { isLoopback } from "../platform/index.js";

/** With a slash at its end. */
const CONSOLE = ROUTES.console;
/** What a person types for the console. */
export const WAYS_TO_CONSOLE: readonly string[] = ["/", CONSOLE.slice(0, -1)];

const OTHER_SITE = "requests of pages of other sites are rejected";

/** The hosts under which requests are answered. */
export interface HostNames {
  /** `loopback`: `localhost` and the addresses of this machine alone. `any`: every address, and `localhost`. */
  readonly addresses: "loopback" | "any";
  /** Further names, in lower case, without a port. */
  readonly names: ReadonlySet<string>;
}

const ALLOWED_HOSTS: Readonly<Record<HostNames["addresses"], string>> = {
  loopback: "localhost, 127.0.0.1 and [::1]",
  any: "an address, localhost",
};

/**
 * Makes a function that returns why a request is rejected, or undefined. A page may also give its own name our address, and then send requests as
 * if it were ours (DNS rebinding). They carry that name as their host: only addresses, which no page can have as its name, and known names are
 * accepted. With tokens this is not needed, and `hostNames` undefined.
 */
export function otherSiteRejection(hostNames: HostNames | undefined) {
  const otherHost =
    hostNames &&
    `without tokens a request must name one of these hosts: ${ALLOWED_HOSTS[hostNames.addresses]}, or one of serve --allow-host. ` +
      "Let a proxy send one of them, or use tokens (serve --tokens-file)";
  return (request: IncomingMessage): CoordinatorError | undefined => {
    if (isFromOtherSite(request)) return new CoordinatorError("forbidden", OTHER_SITE);
    if (hostNames === undefined || isAllowedHost(request.headers.host, hostNames)) return undefined;
    return new CoordinatorError("forbidden", otherHost as string);
  };
}

/** Returns whether a `Host` header, with any port, is one of them. */
export function isAllowedHost(host: string | undefined, { addresses, names }: HostNames): boolean {
  const [, inBrackets, plain = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{0,5})?$/.exec(host ?? "") ?? [];
  if (inBrackets !== undefined) return inBrackets === "::1" || (addresses === "any" && isIP(inBrackets) === 6);
  return isLoopback(plain) || names.has(plain.toLowerCase()) || (addresses === "any" && isIP(plain) === 4);
}

/** By headers that browsers set and that a page can't change. Browsers send `Sec-Fetch-Site` over TLS and on loopback. */
function isFromOtherSite(request: IncomingMessage): boolean {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (site !== undefined) return site !== "none" && site !== "same-origin" && !isLinkToConsole(request);
  // Scripts and styles carry `Origin` also for a page of their own site. They are the same in every copy of a release.
  const isAsset = request.method === "GET" && request.url?.startsWith(`${CONSOLE}assets/`);
  return origin !== undefined && !isAsset && !isOwnOrigin(origin, request.headers);
}

/** A person follows a link to the console, which reads nothing but its page. */
function isLinkToConsole({ method, url = "", headers }: IncomingMessage): boolean {
  const [path = ""] = url.split("?");
  const isPage = method === "GET" && (path === CONSOLE || WAYS_TO_CONSOLE.includes(path));
  return isPage && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}

/** With any scheme: a proxy in front may speak TLS for us. */
function isOwnOrigin(origin: string, { host }: IncomingHttpHeaders): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: originHost } = new URL(origin);
  const own = `${protocol}//${host}`;
  return /^https?:$/.test(protocol) && URL.canParse(own) && new URL(own).host === originHost;
}
