/** `/console/`: the operators' page, as the build left it in this package. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROUTES } from "@callnumber/protocol/api";
import helmet from "@fastify/helmet";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance } from "fastify";
import { WAYS_TO_CONSOLE } from "./browser-requests.js";

const CONSOLE = ROUTES.console;
const BUILT = fileURLToPath(new URL("../../dist/console/", import.meta.url));

/** The names of built scripts and styles change with their content. */
const IMMUTABLE = "public, max-age=31536000, immutable";

/** What the page needs, from here: no markup made of text, no inline script or style, no form that leaves it, no frame around it. */
const POLICY = {
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'"],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
    requireTrustedTypesFor: ["'script'"],
    trustedTypes: ["'none'"],
  },
};

const NOT_BUILT = `<!doctype html><html lang="en"><title>Callnumber</title><p>The console was not built. Build it with <code>npm run bootstrap</code>, and start the coordinator again.</p></html>`;

const WITH_HEAD = { exposeHeadRoute: true } as const;

/**
 * Its files are the same in every copy of this release, so every client may load them. Each has a route of its own: no request names a path
 * in the file system. Register it before the hooks that authenticate: they don't run for these files.
 */
export async function registerConsole(app: FastifyInstance): Promise<void> {
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("vary", "accept-encoding");
    if (request.url.startsWith(`${CONSOLE}assets/`)) reply.header("cache-control", IMMUTABLE);
    // Over plain HTTP to another machine a browser ignores this header and logs an error. There it sends no `Sec-Fetch-Site` either.
    if (request.headers["sec-fetch-site"] !== undefined) reply.header("cross-origin-opener-policy", "same-origin");
    done();
  });
  await app.register(helmet, {
    contentSecurityPolicy: POLICY,
    xFrameOptions: { action: "deny" },
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    // It would hold for other ports of this host, too.
    strictTransportSecurity: false,
  });
  for (const path of WAYS_TO_CONSOLE) {
    // Relative, so that it works behind a path prefix, too.
    app.get(path, WITH_HEAD, async (_request, reply) => reply.redirect(`.${CONSOLE}`));
  }
  if (!existsSync(join(BUILT, "index.html"))) {
    app.get(CONSOLE, WITH_HEAD, async (_request, reply) => reply.type("text/html; charset=utf-8").send(NOT_BUILT));
    return;
  }
  await app.register(fastifyStatic, {
    root: BUILT,
    prefix: CONSOLE,
    wildcard: false,
    decorateReply: false,
    // The hook above decides what is cached. No client needs a part of a file.
    cacheControl: false,
    etag: false,
    lastModified: false,
    acceptRanges: false,
    preCompressed: true,
    globIgnore: ["**/*.gz"],
  });
}
