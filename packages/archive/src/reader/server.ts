/** The reader's HTTP server: what each address answers, and what protects readers and server from hostile mail and hostile requests. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { resolveOldLink } from "../links/old-links.js";
import { printable, writeLine } from "../terminal.js";
import { ArchiveReader } from "./archive-reader.js";
import { MailParser } from "./mail-parser.js";
import { messagePage } from "./message-page.js";
import { MissingMessages } from "./missing-messages.js";
import { atomFeed, type Html, listPage, listsPage, missingPage, monthPage, type Site, searchPage } from "./pages.js";
import { withArchivedAt } from "./raw.js";
import { SearchIndex } from "./search-index.js";

export interface ReaderSettings extends Omit<Site, "path" | "styleVersion" | "baseUrl"> {
  readonly archive: string;
  /** Undefined: where it listens. */
  readonly baseUrl: string | undefined;
  readonly coordinator: string | undefined;
}

const STYLE = readFileSync(new URL("../../assets/reader.css", import.meta.url), "utf8");
const ICON = readFileSync(new URL("../../assets/icon.svg", import.meta.url), "utf8");
const STYLE_VERSION = createHash("sha256").update(STYLE).digest("hex").slice(0, 12);
const POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const HEADERS = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};
/** For what a message brings as it is: whatever a browser takes it for, it runs nothing and has no origin. */
const DOWNLOAD_POLICY = "default-src 'none'; sandbox";

const LATEST_COUNT = 10;
const FEED_COUNT = 30;
const FEED_TEXT_LENGTH = 500;
const MONTH_PAGE_SIZE = 300;
const HITS_PER_PAGE = 20;
const QUERY_LENGTH_MAX = 200;
const RAW_CHUNK_BYTES = 1024 * 1024;
/** Each may hold 32 MiB until a slow client has read it. */
const DOWNLOADS_MAX = 4;
const CONNECTIONS_MAX = 256;
const INDEX_RETRY_MS = 60_000;

type MessageRequest = FastifyRequest<{ Params: { number: string; index: string } }>;
type ListRequest = FastifyRequest<{ Params: { list?: string; month: string }; Querystring: { page?: string } }>;
type SearchRequest = FastifyRequest<{ Querystring: { q?: string; list?: string; before?: string } }>;

/** Returns a server that does not listen yet. Closing it ends all that it began. @throws ArchiveError `archive_unusable`. */
export function makeReader(settings: ReaderSettings): FastifyInstance {
  const archive = new ArchiveReader(settings.archive);
  const index = new SearchIndex(archive);
  const parser = new MailParser(settings.archive);
  const missing = new MissingMessages(archive, settings.coordinator);
  const path = settings.baseUrl === undefined ? "" : new URL(settings.baseUrl).pathname.replace(/\/$/, "");
  const server = Fastify({
    bodyLimit: 1024,
    requestTimeout: 10_000,
    connectionTimeout: 60_000,
    keepAliveTimeout: 75_000,
    forceCloseConnections: true,
    http: { maxHeaderSize: 8 * 1024 },
    routerOptions: { maxParamLength: 1000, ignoreTrailingSlash: true },
    frameworkErrors: (_error, _request, reply) => void refuse(reply, 400, "This address can't be read"),
  });
  server.server.maxConnections = CONNECTIONS_MAX;
  const site: Site = {
    ...settings,
    path,
    styleVersion: STYLE_VERSION,
    get baseUrl() {
      return settings.baseUrl ?? server.listeningOrigin;
    },
  };
  server.addHook("onRequest", async (_, reply) => {
    reply.headers(HEADERS);
    if (!settings.isIndexed) reply.header("x-robots-tag", "noindex, nofollow");
  });

  const page = (reply: FastifyReply, content: Html, status = 200) =>
    reply.code(status).type("text/html; charset=utf-8").send(String(content));
  const refuse = (reply: FastifyReply, status: number, title: string, explanation = "") =>
    page(reply.headers(HEADERS), missingPage(site, title, explanation), status);
  const notFound = (reply: FastifyReply) =>
    refuse(reply, 404, "There is no such page", "Nothing in this archive has this address.");

  server.setNotFoundHandler((request, reply) => {
    const callNumber = resolveOldLink(archive.database, request.url);
    if (callNumber === undefined) return notFound(reply);
    return reply.redirect(`${path}/message/${callNumber}`, 308);
  });
  server.setErrorHandler((error: { statusCode?: number; stack?: string }, _, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) return refuse(reply, status, "This request can't be answered");
    writeLine(printable(error.stack ?? String(error), 1000));
    return refuse(reply, status, "This page can't be shown", "Please try again later.");
  });

  const asset = (url: string, type: string, text: string) =>
    server.get(url, (_, reply) =>
      reply.type(type).header("cache-control", "public, max-age=31536000, immutable").send(text),
    );
  asset("/style.css", "text/css; charset=utf-8", STYLE);
  asset("/icon.svg", "image/svg+xml", ICON);
  server.get("/robots.txt", (_, reply) => {
    const paths = settings.isIndexed ? [`${path}/search`, `${path}/message/*/raw`] : ["/"];
    return reply.type("text/plain").send(`User-agent: *\n${paths.map((each) => `Disallow: ${each}\n`).join("")}`);
  });

  server.get("/", (_, reply) => page(reply, listsPage(site, archive.monthCounts(), archive.latest(LATEST_COUNT))));
  server.get("/feed.atom", (_, reply) => sendFeed(reply, undefined));
  for (const prefix of ["/list/:list", "/unlisted"]) {
    server.get(prefix, (request: ListRequest, reply) => {
      const { list, months } = monthsOf(request);
      return months.length === 0 ? notFound(reply) : page(reply, listPage(site, list, months));
    });
    server.get(`${prefix}/feed.atom`, (request: ListRequest, reply) => {
      const { list, months } = monthsOf(request);
      return months.length === 0 ? notFound(reply) : sendFeed(reply, list);
    });
    server.get(`${prefix}/:month`, (request: ListRequest, reply) => {
      const { list, months } = monthsOf(request);
      const month = request.params.month === "undated" ? null : request.params.month;
      const at = months.findIndex((each) => each.month === month);
      const pageCount = Math.ceil((months[at]?.count ?? 0) / MONTH_PAGE_SIZE);
      const number = Math.min(Math.max(1, Number.parseInt(request.query.page ?? "1", 10) || 1), pageCount);
      if (at < 0) return notFound(reply);
      const rows = archive.month(list, month, (number - 1) * MONTH_PAGE_SIZE, MONTH_PAGE_SIZE);
      const [before, after] = [months[at - 1]?.month ?? undefined, months[at + 1]?.month ?? undefined];
      return page(reply, monthPage(site, { list, month, rows, page: number, pageCount, before, after }));
    });
  }

  server.get("/message/:number", async (request: MessageRequest, reply) => {
    const row = archive.find(request.params.number);
    if (row === undefined) return await sendMissing(request, reply);
    const [thread, relatives, neighbors] = [archive.threadOf(row), archive.relativesOf(row), archive.neighborsOf(row)];
    const mail = await parser.show(row.callNumber);
    const isStored = (callNumber: string) => archive.has(callNumber);
    return page(reply, messagePage(site, { row, mail, thread, relatives, neighbors, isStored }));
  });
  server.get("/message/:number/raw", async (request: MessageRequest, reply) => {
    const { number } = request.params;
    if (!archive.has(number)) return await sendMissing(request, reply);
    if (!site.offersRaw) return notFound(reply);
    reply.headers({ "content-security-policy": DOWNLOAD_POLICY, "x-robots-tag": "noindex" });
    reply.header("content-disposition", `inline; filename="${number}.eml"`).type("text/plain; charset=utf-8");
    return reply.send(Readable.from(withArchivedAt(rawChunks(number), `${site.baseUrl}/message/${number}`)));
  });
  let downloadCount = 0;
  server.get("/message/:number/attachments/:index", async (request: MessageRequest, reply) => {
    const { number, index: position } = request.params;
    if (!archive.has(number)) return await sendMissing(request, reply);
    if (downloadCount >= DOWNLOADS_MAX) return refuse(reply.header("retry-after", "5"), 503, "Too many downloads");
    downloadCount++;
    reply.raw.once("close", () => downloadCount--);
    const attachment = await parser.attachment(number, Number(position) - 1);
    if (attachment === undefined) return notFound(reply);
    reply.headers({ "content-security-policy": DOWNLOAD_POLICY, "x-robots-tag": "noindex" });
    const name = encodeURIComponent(attachment.name).replace(
      /['()*!]/g,
      (each) => `%${each.charCodeAt(0).toString(16)}`,
    );
    reply.header("content-disposition", `attachment; filename*=UTF-8''${name}`).type("application/octet-stream");
    return reply.send(attachment.content);
  });

  server.get("/search", (request: SearchRequest, reply) => {
    const query = `${request.query.q ?? ""}`.slice(0, QUERY_LENGTH_MAX).trim();
    const list = request.query.list === undefined ? undefined : String(request.query.list);
    const before = Number.parseInt(request.query.before ?? "", 10) || undefined;
    const found = archive.find(query) ?? archive.findRenumbered(query);
    const hits = found !== undefined ? [] : index.search(query, HITS_PER_PAGE + 1, before, list);
    const shown = hits.slice(0, HITS_PER_PAGE);
    const rows = found === undefined ? shown.flatMap(({ callNumber }) => archive.find(callNumber) ?? []) : [found];
    const last = hits.length > shown.length ? shown.at(-1)?.place : undefined;
    const parameters = new URLSearchParams({ q: query, ...(list !== undefined && { list }), before: String(last) });
    const older = last === undefined ? undefined : `${path}/search?${parameters}`;
    return page(reply, searchPage(site, { query, list, rows, hits: shown, older, share: index.share }));
  });

  function monthsOf({ params }: ListRequest) {
    const list = params.list ?? null;
    const months = archive.monthCounts().filter((each) => each.list === list);
    return { list, months: months.toSorted((a, b) => ((a.month ?? "") < (b.month ?? "") ? -1 : 1)) };
  }

  function sendFeed(reply: FastifyReply, list: string | null | undefined) {
    const rows = archive.latest(FEED_COUNT, list);
    const texts = rows.map((row) => index.beginOf(row, FEED_TEXT_LENGTH));
    return reply.type("application/atom+xml; charset=utf-8").send(String(atomFeed(site, list, rows, texts)));
  }

  async function sendMissing({ params }: MessageRequest, reply: FastifyReply) {
    const renumbered = archive.findRenumbered(params.number);
    // Not permanent: the number may come back with a copy of the message.
    if (renumbered !== undefined) return reply.redirect(`${path}/message/${renumbered.callNumber}`, 307);
    const { explanation, suggestions } = await missing.explain(params.number);
    return page(reply, missingPage(site, "There is no such message", explanation, suggestions), 404);
  }

  function* rawChunks(callNumber: string): Generator<Buffer> {
    const byteCount = archive.byteCount(callNumber);
    for (let offset = 0; offset === 0 || offset < byteCount; offset += RAW_CHUNK_BYTES) {
      yield archive.raw(callNumber, offset, RAW_CHUNK_BYTES);
    }
  }

  /** A full disk or a busy archive ends it for a minute. */
  async function fillIndex(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await index.fill((callNumber) => parser.indexedText(callNumber), signal);
      } catch (error) {
        writeLine(`The search index ${settings.archive}.search can't be filled: ${(error as Error).message}`);
        await delay(INDEX_RETRY_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  const filling = new AbortController();
  let filled: Promise<void> | undefined;
  server.addHook("onListen", async () => {
    filled = fillIndex(filling.signal);
  });
  server.addHook("onClose", async () => {
    filling.abort();
    await Promise.all([filled, parser.close()]);
    index[Symbol.dispose]();
    archive[Symbol.dispose]();
  });
  return server;
}
