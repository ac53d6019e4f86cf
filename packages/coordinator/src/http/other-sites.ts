/**
 * Rejects requests that a page of another site caused. A browser sends them with whatever access its machine has: where no token is asked for,
 * that would be all.
 */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import type { FastifyRequest } from "fastify";
import type { TypedApp } from "./app.js";
import type { Refusals } from "./error-response.js";
import { isSentByOwnPage } from "./own-page.js";

/** With a slash at its end. */
const CONSOLE = OPERATOR_ROUTES.console;

export function rejectOtherSites(app: TypedApp, refusals: Refusals): void {
  app.addHook("onRequest", (request, reply, done) => {
    if (isFromOtherSite(request)) {
      reply.send(
        refusals.refuse({ code: "forbidden", message: "pages of other sites may not ask here" }, request, reply),
      );
    } else done();
  });
}

/** By what browsers say of the page that asks, and a page can't change. Programs say nothing of it. */
function isFromOtherSite(request: FastifyRequest): boolean {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (site !== undefined) return site !== "none" && site !== "same-origin" && !isVisit(request);
  // Scripts and styles bear `Origin` also for a page of their own site. They are the same in every copy of a release.
  return origin !== undefined && !isFile(request) && !isSentByOwnPage(request.headers);
}

function isFile({ method, url }: FastifyRequest): boolean {
  return method === "GET" && url.startsWith(`${CONSOLE}assets/`);
}

/** A person follows a link to the console: nothing but its page is read by that. */
function isVisit({ method, url, headers }: FastifyRequest): boolean {
  const [path] = url.split("?");
  const isPage = method === "GET" && (path === CONSOLE || path === CONSOLE.slice(0, -1));
  return isPage && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}
