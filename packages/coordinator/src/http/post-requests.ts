/**
 * `POST` with a body of JSON: leases, reports and requests for numbers, from their head to their response, without the web framework, which
 * would take half of what a lease costs. What holds for every request was checked before (server.ts).
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { parse as parseQuery } from "node:querystring";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { SCHEMA_WORDS } from "@callnumber/protocol/schemas";
import { parse } from "secure-json-parse";
import type * as z from "zod";
import { CoordinatorError } from "../errors.js";
import type { Log } from "../log.js";
import type { TypedApp } from "./app.js";
import { ANONYMOUS, type Authenticator, type Principal, rejectionOf, unauthorized } from "./auth.js";
import { invalidRequest, type RejectedRequest, send } from "./error-response.js";
import type { ConcurrencyLimit } from "./in-flight-limits.js";
import type { NodeServers } from "./node-servers.js";
import type { Operation } from "./openapi.js";

/** Larger than any request of ours. */
const BODY_BYTES_MAX = 4096;
const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/** What a route takes and does. It needs the permission `lease`. */
export interface PostRoute<Params, Body, Query = undefined, Result extends object = object> {
  readonly path: string;
  /** For OpenAPI, as `returns`. */
  readonly operation: Operation;
  readonly returns: z.ZodType;
  readonly params: z.ZodType<Params>;
  readonly body: z.ZodType<Body>;
  /** Whether an empty body counts as `{}`, whatever its type. */
  readonly canBeEmpty?: boolean;
  /** Without it the route has no query. */
  readonly query?: z.ZodType<Query>;
  readonly slots: ConcurrencyLimit;
  /** Of a success. */
  readonly status: number;
  readonly act: (call: PostCall, params: Params, body: Body, query: Query) => Promise<Result>;
  /** Of a result, for a request whose `Accept` prefers `text/plain`. Default: the result is always JSON. */
  readonly text?: (result: Result) => string;
  /** The client left before the first byte of the response: the result reaches no client. */
  readonly undo?: (result: never) => void;
}

/** A request from its head to its response. Has the part of an AbortSignal that a lease looks at. */
export class PostCall implements RejectedRequest {
  principal: Principal = ANONYMOUS;
  body: unknown;

  constructor(readonly raw: IncomingMessage) {}

  /** The client has closed the connection, or its half of it: no response reaches it. */
  get isAbandoned(): boolean {
    const { socket } = this.raw;
    return socket.destroyed || socket.writableEnded;
  }

  /** @throws RequesterGone when no response reaches the client. */
  throwIfAborted(): void {
    if (this.isAbandoned) throw new RequesterGone();
  }
}

/** Nothing was done for a request whose client had left. */
class RequesterGone extends Error {}

export interface PostOptions {
  readonly authenticator: Authenticator;
  readonly servers: NodeServers;
  readonly log: Log;
  readonly sendError: (error: unknown, call: PostCall, response: ServerResponse) => void;
}

/** Any of them: each checks what it takes itself. */
// biome-ignore lint/suspicious/noExplicitAny: a route is added with its own types
type AnyRoute = PostRoute<any, any, any, any>;

export class PostRequests {
  readonly #options: PostOptions;
  #looked: Promise<void> | undefined;
  readonly #routes: { readonly pattern: RegExp; readonly route: AnyRoute }[] = [];

  constructor(options: PostOptions) {
    this.#options = options;
  }

  add<Params, Body, Query, Result extends object>(route: PostRoute<Params, Body, Query, Result>): void {
    this.#routes.push({ pattern: new RegExp(`^${route.path.replace(/:(\w+)/g, "(?<$1>[^/?%]+)")}$`), route });
  }

  /** The framework describes the routes, and hands over requests whose path is written in another way than our clients do. */
  register(app: TypedApp): void {
    for (const { route } of this.#routes) {
      const { path, operation, params, body, query, status, returns } = route;
      app.post(path, {
        config: { permission: "lease", operation },
        schema: { params, body, ...(query && { querystring: query }), response: { [status]: returns } },
        onRequest: (request, reply, _done) => {
          reply.hijack();
          void this.#answer(route, request.raw, reply.raw, request.params);
        },
        handler: async () => {},
      });
    }
  }

  /** Takes the request, and returns true, if it is for one of the routes. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.method !== "POST") return false;
    const [path = "", query] = (request.url as string).split("?", 2);
    for (const { pattern, route } of this.#routes) {
      const params = pattern.exec(path)?.groups;
      // The framework rejects a query where there is none.
      if (params === undefined || (query !== undefined && route.query === undefined)) continue;
      void this.#answer(route, request, response, params);
      return true;
    }
    return false;
  }

  async #answer(route: AnyRoute, request: IncomingMessage, response: ServerResponse, params: unknown): Promise<void> {
    const { authenticator, servers, log, sendError } = this.#options;
    const call = new PostCall(request);
    try {
      call.principal = authenticator.authenticate(request) ?? ANONYMOUS;
      const { namespace } = params as { readonly namespace: string };
      const rejection = rejectionOf(call.principal, { permission: "lease", namespace });
      if (rejection !== undefined) throw rejection;
      servers.know(request, response);
      const isEmptyAllowed = route.canBeEmpty === true;
      const content = await bodyOf(request, response, isEmptyAllowed);
      call.body = isEmptyAllowed && content.length === 0 ? {} : parsed(content);
      const [ofPath, body] = [checked("params", route.params, params), checked("body", route.body, call.body)];
      const query = route.query && checked("querystring", route.query, queryOf(request));
      await this.#untilLooked();
      call.throwIfAborted();
      // The body may arrive long after the head, and a token may be revoked in between.
      if (!authenticator.isValid(call.principal)) throw unauthorized();
      // Not before the body is there: a client that sends it slowly would hold a slot.
      const free = route.slots.take(call.principal.tokenId ?? request.socket.remoteAddress ?? "");
      try {
        const result = await route.act(call, ofPath, body, query);
        if (call.isAbandoned) {
          route.undo?.(result as never);
          response.destroy();
        } else if (route.text && prefersText(request.headers.accept))
          send(response, route.status, route.text(result), "text");
        else send(response, route.status, JSON.stringify(result));
      } finally {
        free();
      }
    } catch (error) {
      if (!(error instanceof RequesterGone)) return sendError(error, call, response);
      log.debug({ path: route.path, remoteAddress: request.socket.remoteAddress }, "requester_gone");
      response.destroy();
    }
  }

  /**
   * Resolves after the next turn of the event loop. A client that gave up has closed its connection, but Node reads that one turn after its
   * request. Without the wait, a coordinator that was stopped or starved would lease for clients that have left, while others wait.
   */
  #untilLooked(): Promise<void> {
    this.#looked ??= endOfTurn().then(() => {
      this.#looked = undefined;
      return endOfTurn();
    });
    return this.#looked;
  }
}

/** Resolves to the body: JSON by its type, and no larger than allowed. The connection of a larger one ends, since the rest of it may come. */
function bodyOf(request: IncomingMessage, response: ServerResponse, isEmptyAllowed: boolean): Promise<Buffer> {
  const { "content-type": type = "", "content-length": length } = request.headers;
  const isJson = JSON_TYPE.test(type);
  const otherType = () => new CoordinatorError("unsupported_media_type", "the body must be application/json");
  if (!isJson && !isEmptyAllowed) throw otherType();
  return new Promise((resolve, reject) => {
    const rejectLarge = () => {
      response.setHeader("connection", "close");
      reject(new CoordinatorError("body_too_large", `the body may have ${BODY_BYTES_MAX} bytes`));
    };
    if (Number(length) > BODY_BYTES_MAX) return rejectLarge();
    const chunks: Buffer[] = [];
    let byteCount = 0;
    const take = (chunk: Buffer) => {
      byteCount += chunk.length;
      if (byteCount <= BODY_BYTES_MAX) {
        chunks.push(chunk);
        return;
      }
      // Once: the headers of the response may be sent when the next chunk arrives. What still comes is read, and dropped.
      request.off("data", take);
      rejectLarge();
    };
    request.on("data", take);
    request.on("end", () => {
      if (byteCount > 0 && !isJson) reject(otherType());
      else resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    });
    request.on("error", () => reject(new CoordinatorError("invalid_request", "the request broke off")));
  });
}

/** Whether the header names `text/plain`, and accepts JSON no better. Where it names both alike, the first one is preferred. */
function prefersText(accept = ""): boolean {
  const ranges = accept.split(",").map((range, place) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const weight = Number(parameters.find((each) => each.startsWith("q="))?.slice(2) ?? 1);
    return [type, { weight, place }] as const;
  });
  const of = new Map(ranges);
  const [text, json] = [of.get("text/plain"), of.get("application/json")];
  if (text === undefined || !(text.weight > 0)) return false;
  // A range with a wildcard counts for JSON that is not named.
  const { weight = 0 } = json ?? of.get("application/*") ?? of.get("*/*") ?? {};
  return text.weight > weight || (text.weight === weight && (json === undefined || text.place < json.place));
}

/** A name that comes twice has an array, which no route accepts. */
function queryOf({ url = "" }: IncomingMessage): object {
  return parseQuery(/\?(.*)/s.exec(url)?.[1] ?? "");
}

/** Rejects a key that would set a prototype, too. */
function parsed(body: Buffer): unknown {
  if (!isUtf8(body)) throw new CoordinatorError("invalid_request", "the body is not UTF-8");
  try {
    return parse(body.toString());
  } catch {
    throw new CoordinatorError("invalid_request", `the body is ${body.length === 0 ? "empty" : "not valid JSON"}`);
  }
}

function checked<Value>(part: string, schema: z.ZodType<Value>, value: unknown): Value {
  const { success, data, error } = schema.safeParse(value, SCHEMA_WORDS);
  if (!success) throw invalidRequest(part, error);
  return data;
}
