/**
 * `/console/`: the operators' page, as the build left it in this package. Its few files are read once, at the start, so that no
 * request ever names a file; and nothing but these pages gets the strict policy that browsers keep for them.
 */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { TypedApp } from "./app.js";
import { FOR_OWN_PAGES } from "./own-page-headers.js";

const BUILT_FOLDER = fileURLToPath(new URL("../../dist/console/", import.meta.url));

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** What the page needs, from here, and nothing else: no markup made of text, no inline script or style, no form that leaves it, no frame around it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** The copy button's is the only power over the browser that the page has a use for. */
const POWERS_RENOUNCED = ["camera", "display-capture", "geolocation", "microphone", "payment", "usb"];

const PAGE_HEADERS = {
  ...FOR_OWN_PAGES,
  "content-security-policy": POLICY,
  "permissions-policy": POWERS_RENOUNCED.map((power) => `${power}=()`).join(", "),
  "x-frame-options": "DENY",
  // To ourselves it is told: where browsers say nothing else, it shows that a request came from the page.
  "referrer-policy": "same-origin",
} as const;

/** The pages hold nothing that is not in every copy of this release. */
const UNLISTED = {
  exposeHeadRoute: true,
  config: { access: "public", ignoresQuery: true },
  schema: { hide: true },
} as const;

/** The names of built scripts and styles change with their content. */
const FOR_EVER = "public, max-age=31536000, immutable";

/** Nothing is redirected. Relative, so that it holds behind a path prefix, too. */
const WITHOUT_SLASH = `<!doctype html><html lang="en"><title>Callnumber</title><p><a href="console/">The console</a></p></html>`;

const NOT_BUILT = `<!doctype html><html lang="en"><title>Callnumber</title><p>The console was not built. Build it with <code>npm run bootstrap</code>, and start the coordinator again.</p></html>`;

export function consoleRoute(app: TypedApp): void {
  const root = OPERATOR_ROUTES.console;
  app.get(root.slice(0, -1), UNLISTED, async (_request, reply) =>
    reply
      .headers(PAGE_HEADERS)
      .type(CONTENT_TYPES[".html"] as string)
      .send(WITHOUT_SLASH),
  );
  const files = builtFiles();
  const page = files.find(({ path }) => path === "index.html") ?? new BuiltFile("index.html", Buffer.from(NOT_BUILT));
  app.get(root, UNLISTED, async (request, reply) => {
    // Over plain HTTP to another machine a browser takes no notice of it, and complains: there it sends no such header either.
    if (request.headers["sec-fetch-site"] !== undefined) reply.header("cross-origin-opener-policy", "same-origin");
    return sendFile(request, reply, page);
  });
  for (const file of files) {
    if (file.path === "index.html") continue;
    const keeping = file.path.startsWith("assets/") ? { "cache-control": FOR_EVER } : {};
    app.get(`${root}${file.path}`, UNLISTED, async (request, reply) => sendFile(request, reply.headers(keeping), file));
  }
}

class BuiltFile {
  #gzipped: Buffer | undefined;

  /** @param path from the page's own address, with forward slashes. */
  constructor(
    readonly path: string,
    readonly content: Buffer,
  ) {}

  /** Compressed when it is first asked for: a coordinator that nobody looks at has no use for it. */
  get gzipped(): Buffer {
    this.#gzipped ??= gzipSync(this.content, { level: 9 });
    return this.#gzipped;
  }
}

/** None when the package was not built whole: then the page says so, and leasing goes on. */
function builtFiles(): readonly BuiltFile[] {
  try {
    return readdirSync(BUILT_FOLDER, { recursive: true, encoding: "utf8" })
      .filter((path) => Object.hasOwn(CONTENT_TYPES, extname(path)))
      .map((path) => new BuiltFile(path.replaceAll("\\", "/"), readFileSync(join(BUILT_FOLDER, path))));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: BuiltFile): FastifyReply {
  const takesGzip = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
  reply
    .headers(PAGE_HEADERS)
    .header("vary", "accept-encoding")
    .type(CONTENT_TYPES[extname(file.path)] as string);
  return takesGzip ? reply.header("content-encoding", "gzip").send(file.gzipped) : reply.send(file.content);
}
