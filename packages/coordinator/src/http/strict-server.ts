/**
 * The server of Node behind its gate: a request reaches the application only when its head can be read in one way, and costs no more
 * of time, bytes and connections than a request of ours. What does not pass is answered with a constant, and its connection ends.
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import type { ErrorCode } from "@callnumber/protocol/wire";
import type { Log } from "../log.js";
import { type Connection, Connections } from "./connections.js";
import { type ConstantRefusal, lastRefusalAnswer, refusalText } from "./constant-refusals.js";
import { type AllowsOrigin, refusalOfHead } from "./request-head.js";
import { endsOf } from "./socket-ends.js";
import { Turns } from "./turns.js";
import { hasTooMuchWithoutRequest } from "./without-request.js";

/** Request line and headers together. */
const HEADER_BYTES_MAX = 8192;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
const TIMEOUT_LOOK_EVERY_MS = 1_000;
/** Longer than proxies keep an idle connection: who sends on one that just ends gets no answer. */
const KEEP_ALIVE_MS = 72_000;
/** The platform ends an idle connection earlier, but not one on which empty lines come; and a request may just be coming. */
const IDLE_MAX_MS = KEEP_ALIVE_MS + REQUEST_TIMEOUT_MS;
/**
 * Nothing goes in or out: who reads an export is gone. Event streams speak more often. Node looks a second time before it ends a connection on
 * which bytes wait to be taken, so that is after twice this time at most.
 */
const SILENCE_LOOK_EVERY_MS = 30_000;
const REQUESTS_PER_CONNECTION_MAX = 100_000;
const REQUESTS_WAITING_MAX = 16;
/** Of somebody who was never let in on the connection: refusals are paced, and what came with the first question would be parsed already. */
const STRANGERS_REQUESTS_WAITING_MAX = 1;
export const DEFAULT_CONNECTION_COUNT_MAX = 2_048;
/** How long a refused caller may take to read why. */
const LAST_WORD_MS = 1_000;

export interface StrictOptions {
  /** Connections at a time. Default 2,048; each costs a file descriptor and some kilobytes. */
  readonly connectionCountMax?: number;
  /** How long a connection may be without a request, whatever else comes on it; looked at once a second. Default 87,000. */
  readonly idleMaxMs?: number;
  /** Which requests that bear `Origin` may pass. Default: none. */
  readonly allowsOrigin?: AllowsOrigin;
}

/** Makes the bare server; another one than Node's for HTTP must take the same options. */
export type MakeServer = (options: ServerOptions) => Server;

const CODES_OF_PARSER: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timed_out",
};

const MESSAGES: Readonly<Partial<Record<ErrorCode, string>>> = {
  headers_too_large: "request line and headers may hold 8 KiB together",
  request_timed_out: "the request did not arrive whole in time",
};

const NO_REQUEST: ConstantRefusal = { code: "invalid_request", message: "this is no well-formed HTTP/1.1 request" };
const TOO_MANY_CONNECTIONS: ConstantRefusal = {
  code: "overloaded",
  message: "too many connections are open; ask again later",
};
const USED_UP: ConstantRefusal = {
  code: "overloaded",
  message: "too many requests on one connection; open another one",
};
const NOTHING_ASKED: ConstantRefusal = {
  code: "invalid_request",
  message: "too much came on the connection that is no request, or for too long",
};
const BEHIND_STREAM: ConstantRefusal = {
  code: "invalid_request",
  message: "an event stream has no end: what comes behind it on its connection ends both",
};
const NO_TUNNEL: ConstantRefusal = {
  code: "method_not_allowed",
  message: "no path has this method; possible: GET, HEAD, POST",
  headers: { allow: "GET, HEAD, POST" },
};

/** One gate for all servers of one application: they share the connections. Its refusals are told at the level of debugging. */
export class StrictGate {
  readonly #options: StrictOptions;
  readonly #log: Log;
  readonly #connections: Connections;
  readonly #turns = new Turns();
  #looks: ReturnType<typeof setInterval> | undefined;

  constructor(options: StrictOptions, log: Log) {
    this.#options = options;
    this.#log = log;
    const countMax = options.connectionCountMax ?? DEFAULT_CONNECTION_COUNT_MAX;
    this.#connections = new Connections({ countMax, drop: (connection) => this.#drop(connection) });
  }

  serverFor(handler: RequestListener, make: MakeServer = createServer): Server {
    const server = make({
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_LOOK_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      insecureHTTPParser: false,
      // Ours says the same with a code that clients know.
      requireHostHeader: false,
    });
    server.setTimeout(SILENCE_LOOK_EVERY_MS);
    const pass = (request: IncomingMessage, response: ServerResponse) => this.#pass(request, response, handler);
    for (const event of ["request", "checkContinue", "checkExpectation"]) server.on(event, pass);
    server.on("connect", (_request, socket) => this.#refuseTunnel(socket as Socket));
    server.on("clientError", (error, socket) => this.#refuseBroken(error, socket as Socket));
    this.#watchConnections(server);
    return server;
  }

  /** Whoever asks is known, or nobody is asked: its connection is worth more than a stranger's. */
  letIn(request: IncomingMessage): void {
    this.#connections.of(request.socket)?.letIn(request);
  }

  /** Whether it was, for this request or an earlier one on the same connection. */
  isLetIn(request: IncomingMessage): boolean {
    return this.#connections.of(request.socket)?.isLetIn ?? false;
  }

  /** Nothing that comes behind this request on its connection is looked at; its answer must be the last. */
  endBehind(request: IncomingMessage): void {
    const connection = this.#connections.of(request.socket);
    if (connection !== undefined) connection.isRefused = true;
  }

  /**
   * The answer to this request has no end. Whatever else comes on its connection, also half a request, ends the connection: it would wait for
   * ever, and while it is not read nobody sees that the other end is gone.
   */
  beginStream(request: IncomingMessage): void {
    const connection = this.#connections.of(request.socket);
    if (connection === undefined) return;
    connection.stream = request;
    if (connection.isRefused || connection.underWayCount > 1) this.#endStream(request.socket);
  }

  #watchConnections(server: Server): void {
    const isEncrypted = "setSecureContext" in server;
    const waiting = new Map<string, Connection>();
    server.on("connection", (socket) => {
      const connection = this.#connections.open(socket, !isEncrypted);
      this.#looks ??= setInterval(() => this.#look(), TIMEOUT_LOOK_EVERY_MS).unref();
      if (!isEncrypted) return;
      const ends = endsOf(socket);
      waiting.set(ends, connection);
      socket.once("close", () => waiting.delete(ends));
    });
    server.on("secureConnection", (socket: Socket) => {
      const connection = waiting.get(endsOf(socket));
      if (connection === undefined) socket.destroy();
      else this.#connections.speak(connection, socket);
    });
  }

  #look(): void {
    for (const connection of this.#connections.all()) {
      if (!this.#hasNothingAsked(connection)) continue;
      this.#tell(NOTHING_ASKED, connection.socket);
      connection.socket.destroy();
    }
    if (this.#connections.count > 0) return;
    clearInterval(this.#looks);
    this.#looks = undefined;
  }

  /** Also asked when a request comes: who says one behind the rest would never be seen by a look. */
  #hasNothingAsked(connection: Connection): boolean {
    const { idleMaxMs = IDLE_MAX_MS } = this.#options;
    return hasTooMuchWithoutRequest(connection, idleMaxMs, performance.now());
  }

  #pass(request: IncomingMessage, response: ServerResponse, handler: RequestListener): void {
    const connection = this.#connections.of(request.socket);
    if (connection === undefined || connection.isRefused) {
      // Not one byte more is read: what is not answered would pile up.
      request.socket.pause();
      return;
    }
    if (connection.stream !== undefined) {
      this.#endStream(request.socket);
      return;
    }
    const refusal =
      refusalOfHead(request, this.#options.allowsOrigin ?? allowsNone) ??
      (isUsedUp(connection) ? USED_UP : undefined) ??
      (this.#hasNothingAsked(connection) ? NOTHING_ASKED : undefined);
    if (refusal !== undefined) {
      connection.isRefused = true;
      this.#tell(refusal, request.socket);
      if (refusal.code === "body_too_large") keepWhileItIsTold(request.socket);
      const { status, headers, body } = lastRefusalAnswer(refusal);
      response.writeHead(status, headers).end(request.method === "HEAD" ? undefined : body);
      return;
    }
    if (connection.requestCount === REQUESTS_PER_CONNECTION_MAX - 1) response.setHeader("connection", "close");
    this.#connections.begin(connection, request, response, () =>
      this.#turns.begin(request.socket, connection, () => handler(request, response)),
    );
  }

  #refuseBroken(error: Error & { code?: string }, socket: Socket): void {
    const code = CODES_OF_PARSER[error.code ?? ""];
    if (socket.destroyed || !socket.writable) socket.destroy();
    else this.#refuse(socket, code === undefined ? NO_REQUEST : { code, message: MESSAGES[code] ?? code });
  }

  /**
   * Node has let go of the connection: nobody else sees its errors, of which one would end the process, or that it is silent or gone. So it
   * has a moment for the answers before, and no more: a stream before it has no end.
   */
  #refuseTunnel(socket: Socket): void {
    socket.on("error", () => socket.destroy());
    endSoon(socket);
    this.#refuse(socket, NO_TUNNEL);
    socket.resume();
  }

  /** Once those before it on the same connection have their answers: a broken request takes nothing from a good one. */
  #refuse(socket: Socket, refusal: ConstantRefusal): void {
    const connection = this.#connections.of(socket);
    if (connection?.stream !== undefined) {
      this.#endStream(socket);
      return;
    }
    if (connection?.isRefused) return;
    this.#tell(refusal, socket);
    if (connection === undefined) {
      sayLast(socket, refusal);
      return;
    }
    connection.isRefused = true;
    connection.whenAnswered(() => sayLast(socket, refusal));
  }

  #endStream(socket: Socket): void {
    this.#tell(BEHIND_STREAM, socket);
    socket.destroy();
  }

  #drop(connection: Connection): void {
    this.#tell(TOO_MANY_CONNECTIONS, connection.socket);
    connection.isRefused = true;
    const { speaking, socket, hasProved } = connection;
    // Who waits between two requests takes a word for the answer to its next.
    if (speaking === undefined || hasProved) {
      socket.destroy();
      return;
    }
    // One that does not read would keep what it was to make room with.
    endSoon(socket);
    speaking.write(refusalText(TOO_MANY_CONNECTIONS));
    socket.destroySoon();
  }

  #tell({ code, message: reason }: ConstantRefusal, { remoteAddress }: Socket): void {
    this.#log.debug({ code, reason, remoteAddress }, "refusal");
  }
}

/** What waits on one connection costs memory, and no caller of ours asks before it was answered. */
function isUsedUp({ requestCount, underWayCount, isLetIn }: Connection): boolean {
  const waitingMax = isLetIn ? REQUESTS_WAITING_MAX : STRANGERS_REQUESTS_WAITING_MAX;
  return requestCount >= REQUESTS_PER_CONNECTION_MAX || underWayCount >= waitingMax;
}

function allowsNone(): boolean {
  return false;
}

/** Says it, and gives the other end a moment to read it: a connection that is cut while bytes arrive loses what was said. */
function sayLast(socket: Socket, refusal: ConstantRefusal): void {
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  endSoon(socket);
  socket.on("error", () => {});
  socket.once("end", () => socket.destroy());
  socket.end(refusalText(refusal));
}

/**
 * The platform cuts a connection behind its last answer, and who still sends a long body then loses the answer. Not one byte of the body is read
 * for that.
 */
function keepWhileItIsTold(socket: Socket): void {
  socket.destroySoon = () => {
    socket.pause();
    endSoon(socket);
    socket.end();
  };
}

/** Whatever becomes of it, and whoever reads what. */
function endSoon(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LAST_WORD_MS);
  socket.once("close", () => clearTimeout(timer));
}
