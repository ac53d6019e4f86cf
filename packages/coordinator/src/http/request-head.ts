/**
 * What the head of a request must be like before anybody looks at the request. Two programs that read one request differently are
 * how requests are smuggled: so what can be read in two ways is refused, and so is all that no caller of ours sends. Pure.
 */
import type { IncomingMessage } from "node:http";
import type { ConstantRefusal } from "./constant-refusals.js";

/** Larger than any request of ours, smaller than anything that hurts. */
export const BODY_BYTES_MAX = 4096;
/** A browser behind two proxies sends about thirty. */
const HEADER_COUNT_MAX = 64;

/** What is looked at. */
type RequestHead = Pick<IncomingMessage, "method" | "url" | "httpVersion" | "rawHeaders" | "headers">;

/** Whether a request that bears `Origin` may pass; pages of other sites never may. */
export type AllowsOrigin = (request: RequestHead) => boolean;

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]);
const WITHOUT_BODY: ReadonlySet<string> = new Set(["GET", "HEAD"]);
/** Read in two ways when they come twice: the first by one program, the last by another. */
const SINGLE: ReadonlySet<string> = new Set(["host", "content-type", "content-length", "authorization"]);
/**
 * `Transfer-Encoding`: Node calls a handler before it has read the first chunk, and a lease would be taken for what turns out to be
 * none. `Expect`: nothing of ours is large enough to ask first.
 */
const REFUSED: ReadonlySet<string> = new Set(["transfer-encoding", "content-encoding", "upgrade", "expect", "trailer"]);

const HOST_PATTERN = /^(?:[\w.-]{1,253}|\[[\da-fA-F:.]{2,45}\])(?::\d{1,5})?$/;
const LENGTH_PATTERN = /^\d{1,15}$/;
const CONTENT_TYPE_PATTERN = /^application\/json(?:; ?charset=utf-8)?$/i;
/** All that paths of ours are made of: none of them needs an escape. */
const PATH_PATTERN = /^(?:\/[\w.~-]+)*\/?$/;
const DOT_SEGMENT_PATTERN = /\/\.{1,2}(?:\/|$)/;
/** What stands behind it was typed by people and may hold anything, escaped: it is read as a call number and names nothing. */
const BEFORE_TYPED_TEXT = /^\/v1\/(?:public\/)?namespaces\/[\w.-]+\/call-numbers\/(?=[^/]+$)/;
const ESCAPED_PATTERN = /^(?:[!$&-;=?-Z_a-z~@]|%[\dA-Fa-f]{2})*$/;
const FILES = "/console/assets/";
/** To these a link of another site may lead. */
const PAGES: ReadonlySet<string> = new Set(["/console", "/console/"]);

/** Why a request is turned away by its head; undefined when it is not. */
export function refusalOfHead(request: RequestHead, allowsOrigin: AllowsOrigin): ConstantRefusal | undefined {
  const { method = "", httpVersion } = request;
  if (httpVersion !== "1.1") return invalid("speak HTTP/1.1 (nginx: proxy_http_version 1.1)");
  if (!METHODS.has(method)) return NO_SUCH_METHOD;
  return (
    refusalOfTarget(request) ??
    refusalOfHeaders(request) ??
    refusalOfBody(request) ??
    refusalOfSite(request, allowsOrigin)
  );
}

const NO_SUCH_METHOD: ConstantRefusal = {
  code: "method_not_allowed",
  message: "no path has this method; possible: GET, HEAD, POST",
  headers: { allow: "GET, HEAD, POST" },
};

function refusalOfTarget({ url = "" }: RequestHead): ConstantRefusal | undefined {
  const { path, query } = partsOf(url);
  const typed = BEFORE_TYPED_TEXT.exec(path)?.[0];
  const known = typed ?? path;
  if (!known.startsWith("/")) return invalid("the address must be a path, beginning with one slash");
  if (!PATH_PATTERN.test(known) || DOT_SEGMENT_PATTERN.test(path))
    return invalid("there is no such path: it holds what no path does");
  if (typed !== undefined && !isEscaped(path.slice(typed.length)))
    return invalid("the call number must be percent-encoded UTF-8");
  if (!isEscaped(query)) return invalid("the query must be percent-encoded UTF-8");
  return undefined;
}

function refusalOfHeaders({ rawHeaders }: RequestHead): ConstantRefusal | undefined {
  if (rawHeaders.length > 2 * HEADER_COUNT_MAX) {
    return { code: "headers_too_large", message: `at most ${HEADER_COUNT_MAX} headers are read` };
  }
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as string).toLowerCase();
    if (REFUSED.has(name)) return invalid(`the header ${name} is not taken; send a body with content-length, as it is`);
    if (!SINGLE.has(name)) continue;
    if (seen.has(name)) return invalid(`the header ${name} came twice`);
    seen.add(name);
    if (name === "host" && !HOST_PATTERN.test(rawHeaders[index + 1] as string))
      return invalid("the header host is malformed");
  }
  return seen.has("host") ? undefined : invalid("the header host is missing");
}

function refusalOfBody({ method = "", headers }: RequestHead): ConstantRefusal | undefined {
  const { "content-length": length, "content-type": type } = headers;
  if (length === undefined) {
    return method === "POST" ? invalid("a POST needs a content-length") : undefined;
  }
  if (!LENGTH_PATTERN.test(length)) return invalid("the header content-length is malformed");
  const bodyBytes = Number(length);
  if (bodyBytes > BODY_BYTES_MAX)
    return { code: "body_too_large", message: `a body holds at most ${BODY_BYTES_MAX} bytes` };
  if (bodyBytes > 0 && WITHOUT_BODY.has(method)) return invalid("GET and HEAD have no body");
  const isTyped = bodyBytes > 0 || type !== undefined;
  if (isTyped && !WITHOUT_BODY.has(method) && !CONTENT_TYPE_PATTERN.test(type ?? "")) {
    return { code: "unsupported_media_type", message: "send content-type: application/json" };
  }
  return undefined;
}

/** What browsers say of the page that asks. Programs say nothing of it. */
function refusalOfSite(request: RequestHead, allowsOrigin: AllowsOrigin): ConstantRefusal | undefined {
  const { origin, "sec-fetch-site": site = "none" } = request.headers;
  if (origin !== undefined && !isFile(request) && !allowsOrigin(request)) return FROM_ELSEWHERE;
  if (site === "none" || site === "same-origin" || isVisit(request)) return undefined;
  return FROM_ELSEWHERE;
}

const FROM_ELSEWHERE: ConstantRefusal = { code: "forbidden", message: "pages of other sites may not ask here" };

/** Browsers send `Origin` for scripts and styles of a page's own site, too. These files are the same in every copy of a release. */
function isFile({ method, url = "" }: RequestHead): boolean {
  return method === "GET" && url.startsWith(FILES);
}

/** Somebody follows a link to the console: nothing but its page is read by that. */
function isVisit({ method, url = "", headers }: RequestHead): boolean {
  const isPage = method === "GET" && PAGES.has(partsOf(url).path);
  return isPage && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}

function partsOf(url: string): { path: string; query: string } {
  const end = url.indexOf("?");
  return end === -1 ? { path: url, query: "" } : { path: url.slice(0, end), query: url.slice(end + 1) };
}

function isEscaped(text: string): boolean {
  if (!ESCAPED_PATTERN.test(text)) return false;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function invalid(message: string): ConstantRefusal {
  return { code: "invalid_request", message };
}
