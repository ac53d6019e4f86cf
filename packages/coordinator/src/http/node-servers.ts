/**
 * The HTTP servers of Node: their limits, their TLS, and the requests in flight. There is one for each address of `localhost`. A malformed
 * request gets an error body here, and its connection ends.
 */
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { ErrorCode } from "@callnumber/protocol/api";
import type { Log } from "../log.js";
import { Connections } from "./connections.js";
import { COMMON_HEADERS, errorResponse } from "./error-response.js";
import { contextOf, type TlsMaterial } from "./tls.js";

const HTTP_OPTIONS = {
  /** Bytes of request line and headers together. */
  maxHeaderSize: 8_192,
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 1_000,
  /** Longer than proxies keep an idle connection: a request on one that is just closed gets no response. */
  keepAliveTimeout: 72_000,
} as const;
/** For an unknown connection (connections.ts), which has no reason to come back. */
const UNKNOWN_KEEP_ALIVE_S = 5;
/** Clients that know this header close first. */
const KEEP_ALIVE = "keep-alive";
/** So that the clients behind a load balancer spread over the coordinators again, now and then. */
const REQUESTS_PER_CONNECTION_MAX = 10_000;
/**
 * Nothing goes in or out: the client of an export is gone. Event streams send more often. Node checks a second time before it closes a connection
 * on which bytes wait to be read, so that is after twice this time at most.
 */
const SOCKET_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** How long a stop waits for requests in flight. One that takes longer will not end. */
export const DRAIN_TIMEOUT_MS = 10_000;
/** How long it waits for requests that have begun to arrive: a request of ours is one packet, or two. */
const ARRIVAL_TIMEOUT_MS = 1_000;
const DRAIN_POLL_MS = 10;
/** On each address. Each costs a file descriptor and some kilobytes. */
const CONNECTIONS_DEFAULT = 2_048;

/** By Node's own code of the error. */
const MALFORMED: ReadonlyMap<unknown, { readonly code: ErrorCode; readonly message: string }> = new Map([
  ["HPE_HEADER_OVERFLOW", { code: "headers_too_large", message: "request line and headers may hold 8 KiB together" }],
  ["ERR_HTTP_REQUEST_TIMEOUT", { code: "request_timed_out", message: "the request did not arrive whole in time" }],
]);

export interface NodeServersOptions {
  /** Undefined: HTTP is spoken. */
  readonly tls: TlsMaterial | undefined;
  /** Connections at a time, on each address: beyond it unknown ones are closed, else further ones. Default 2,048. */
  readonly maxConnections: number | undefined;
  readonly log: Log;
  /** Gets each well-formed request. */
  readonly listener: RequestListener;
}

export class NodeServers {
  readonly #listener: RequestListener;
  readonly #log: Log;
  readonly #maxConnections: number;
  readonly #servers = new Map<Server | TlsServer, Connections>();
  readonly #inFlight = new Set<ServerResponse>();
  /** One listener for all of them. */
  readonly #end = endOf(this.#inFlight);
  readonly #known = new WeakSet<Socket>();
  #tls: TlsMaterial | undefined;
  #isStopping = false;
  #isClosed = false;

  constructor({ tls, maxConnections = CONNECTIONS_DEFAULT, log, listener }: NodeServersOptions) {
    this.#listener = listener;
    this.#log = log;
    this.#maxConnections = maxConnections;
    this.#tls = tls;
  }

  /** The certificate in use; undefined where HTTP is spoken. */
  get material(): TlsMaterial | undefined {
    return this.#tls;
  }

  /** Whether `close` was called. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /**
   * Listens on the host; on each address of `localhost`, where a further one that is in use or missing is left out. Resolves to the URL.
   * @throws the error of Node when it can't.
   */
  async listen({ host, port: wanted }: { readonly host: string; readonly port: number }): Promise<string> {
    const { address, family, port } = await this.#listenOn(host, wanted);
    if (host === "localhost") {
      const found = await lookup(host, { all: true }).catch(() => []);
      const others = found.filter((other) => other.address !== address);
      await Promise.allSettled(others.map((other) => this.#listenOn(other.address, port)));
    }
    const named = family === "IPv6" ? `[${address}]` : address.replace(/^0\.0\.0\.0$/, "127.0.0.1");
    return `${this.#tls ? "https" : "http"}://${named}:${port}`;
  }

  /** The request needed a permission and got it: from now on its connection is kept as long as any. */
  know({ socket }: IncomingMessage, response: ServerResponse): void {
    if (this.#known.has(socket)) return;
    this.#known.add(socket);
    for (const connections of this.#servers.values()) connections.know(socket);
    response.removeHeader(KEEP_ALIVE);
  }

  /**
   * New connections get this certificate. Open ones go on with the old one, unless the client CA has changed: then all are closed, as their clients
   * may not be trusted any more.
   */
  useTls(material: TlsMaterial): void {
    const isCaChanged = material.clientCa !== this.#tls?.clientCa;
    this.#tls = material;
    for (const server of this.#servers.keys())
      if ("setSecureContext" in server) server.setSecureContext(contextOf(material));
    if (isCaChanged) for (const connections of this.#servers.values()) connections.closeAll();
  }

  /**
   * Waits until no request is in flight, at most 10 s, and closes every connection, also those that are not encrypted yet, and those that come from
   * now on. A request that has not arrived whole after one second is cut off: nothing was begun for it, and a slow client would hold up the stop.
   */
  async close(): Promise<void> {
    this.#isStopping = true;
    for (const response of this.#inFlight) if (!response.headersSent) response.setHeader("connection", "close");
    const startedMs = performance.now();
    for (let waitedMs = 0; this.#inFlight.size > 0 && waitedMs < DRAIN_TIMEOUT_MS; ) {
      await delay(DRAIN_POLL_MS);
      waitedMs = performance.now() - startedMs;
      if (waitedMs < ARRIVAL_TIMEOUT_MS) continue;
      for (const { req } of this.#inFlight) if (!req.complete) req.destroy();
    }
    this.#isClosed = true;
    for (const connections of this.#servers.values()) connections.end();
    await Promise.all([...this.#servers.keys()].map((server) => new Promise((resolve) => server.close(resolve))));
  }

  async #listenOn(host: string, port: number): Promise<AddressInfo> {
    const server = this.#create().listen(port, host);
    await once(server, "listening");
    return server.address() as AddressInfo;
  }

  #create(): Server | TlsServer {
    const connections = new Connections({ countMax: this.#maxConnections, log: this.#log });
    const listener: RequestListener = (request, response) => {
      this.#begin(response, connections);
      this.#listener(request, response);
    };
    const server = this.#tls
      ? createTlsServer({ ...HTTP_OPTIONS, ...contextOf(this.#tls), handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, listener)
      : createServer(HTTP_OPTIONS, listener);
    server.maxConnections = this.#maxConnections;
    server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION_MAX;
    server.setTimeout(SOCKET_TIMEOUT_MS);
    server.on("connection", (socket: Socket) => {
      if (this.#isClosed) socket.destroy();
      connections.add(socket);
    });
    server.on("drop", (dropped) => connections.noteDropped(dropped?.remoteAddress));
    server.on("clientError", (error, socket) => this.#rejectMalformed(error, socket as Socket));
    // Node would pass it on as `clientError`, and be sent a response that the client can't read.
    server.removeAllListeners("tlsClientError");
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      socket.destroy();
      this.#log.debug({ reason: error.code ?? error.message }, "handshake_failed");
    });
    this.#servers.set(server, connections);
    return server;
  }

  #begin(response: ServerResponse, connections: Connections): void {
    const { socket } = response.req;
    this.#inFlight.add(response);
    response.on("close", this.#end);
    if (this.#isStopping) response.setHeader("connection", "close");
    if (this.#known.has(socket) || !connections.isUnknown(socket)) return;
    response.setHeader(KEEP_ALIVE, `timeout=${UNKNOWN_KEEP_ALIVE_S}`);
    response.once("finish", () => {
      if (connections.isUnknown(socket)) socket.setTimeout(1_000 * UNKNOWN_KEEP_ALIVE_S);
    });
  }

  #rejectMalformed({ code: nodeCode }: NodeJS.ErrnoException, socket: Socket): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const rejection = MALFORMED.get(nodeCode) ?? {
      code: "invalid_request",
      message: "this is not a well-formed HTTP request",
    };
    const { code, message: reason } = rejection;
    this.#log.debug({ code, reason, remoteAddress: socket.remoteAddress }, "request_rejected");
    const { status, headers, body } = errorResponse(rejection);
    const text = JSON.stringify(body);
    const lines = Object.entries({
      ...COMMON_HEADERS,
      ...headers,
      "content-type": "application/json; charset=utf-8",
      "content-length": Buffer.byteLength(text),
      connection: "close",
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${text}`);
  }
}

function endOf(inFlight: Set<ServerResponse>): (this: ServerResponse) => void {
  return function () {
    inFlight.delete(this);
  };
}
