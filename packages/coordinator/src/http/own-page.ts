/**
 * Whether a request comes from a page of this coordinator's own: what keeps a cookie from working for others. `SameSite` does not
 * do that alone, as another port of the same host is the same site. Pure; believes what a browser says and a page can't change.
 */
import type { IncomingHttpHeaders } from "node:http";

export type PageScheme = "http:" | "https:";

/**
 * `Sec-Fetch-Site`, where the browser sends it, which is over TLS and on loopback; elsewhere, and in browsers from before 2023, the
 * origin of the page that asks: `Origin`, or `Referer`, which links and event streams bear too. A page can leave those out, never make them up.
 * Without any of them the answer is no.
 */
export function isFromOwnPage(headers: IncomingHttpHeaders, scheme: PageScheme): boolean {
  const site = headers["sec-fetch-site"];
  // `none`: typed, or from a bookmark; the person asks, and no page sees what comes.
  if (site !== undefined) return site === "same-origin" || site === "none";
  return isOwnAddress(headers.origin ?? headers.referer, headers.host, scheme);
}

/** The same for what changes something: only a page asks for that, and then a browser names it. Never without `Origin`. */
export function isSentByOwnPage(headers: IncomingHttpHeaders): boolean {
  const { origin, host } = headers;
  const site = headers["sec-fetch-site"];
  const scheme = schemeOf(origin);
  if (scheme === undefined || (site !== undefined && site !== "same-origin")) return false;
  // A proxy may have changed `Host`; the browser knows better.
  return site === "same-origin" || isOwnAddress(origin, host, scheme);
}

/** Of the page that asks; undefined where none is named. */
export function schemeOf(origin: string | undefined): PageScheme | undefined {
  const scheme = urlOf(origin)?.protocol;
  return scheme === "http:" || scheme === "https:" ? scheme : undefined;
}

function isOwnAddress(address: string | undefined, host: string | undefined, scheme: PageScheme): boolean {
  const page = urlOf(address);
  return page !== undefined && page.protocol === scheme && page.host === urlOf(`${scheme}//${host}`)?.host;
}

function urlOf(text: string | undefined): URL | undefined {
  return text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
}
