/** A coordinator that plays a script: it leases rising runs to one client, and refuses, spoils, cuts or delays single responses. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { DEFAULT_NAMESPACE, type Lease, type LeaseRequest, ledgerIdOf, pathOf } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { leaseRequestSchema, reportRequestSchema } from "@callnumber/protocol/schemas";

/** What the coordinator does with one lease request. */
export interface Answer {
  /** Why no number may be made of the lease in it. Without one the lease is right. */
  readonly flaw?: string;
  /** Sends the response, or a part of it. `lease` is the one that would be right. */
  readonly respond: (lease: Lease, socket: Socket) => Promise<unknown> | unknown;
}

export interface ReceivedRequest {
  readonly atMs: number;
  readonly body: LeaseRequest;
}

export type ReceivedReport = NonNullable<LeaseRequest["report"]>;

/** Between the runs of two leases: a client must not count on the next one. */
const RUN_STEP = 1_000;

export const granted: Answer = { respond: (lease, socket) => socket.end(response(201, lease)) };

export const grantedAfter = (delayMs: number): Answer => ({
  respond: async (lease, socket) => {
    await delay(delayMs);
    granted.respond(lease, socket);
  },
});

/** Returns a whole response with its head, after which the connection closes. `body`: JSON, or a text as it is. */
export function response(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string | number>> = {},
): string {
  const content = typeof body === "string" ? body : JSON.stringify(body);
  const fields = { "content-type": "application/json", "content-length": Buffer.byteLength(content), ...headers };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Scripted\r\nconnection: close\r\n${lines.join("")}\r\n${content}`;
}

/** A response without a lease. `body`: JSON, or a text as it is. */
export const refused = (status: number, body: unknown): Answer => ({
  flaw: `its response was ${status} ${JSON.stringify(body)}`,
  respond: (_, socket) => socket.end(response(status, body)),
});

export class ScriptedCoordinator {
  readonly requests: ReceivedRequest[] = [];
  /** Those inside of lease requests, too. */
  readonly reports: ReceivedReport[] = [];
  /** What the real coordinator would have rejected. */
  readonly invalid: string[] = [];
  /** For the next requests, one each; after them, `always`. */
  readonly answers: Answer[] = [];
  always = granted;
  /** Leases whose numbers may be made. */
  readonly granted: Lease[] = [];
  /** Leases that were in spoiled responses: why they must not be used. */
  readonly flawed: { readonly lease: Lease; readonly flaw: string }[] = [];
  storeId = "conformance-store";
  /** The runs of one lease at most. */
  runCountMax = 1;
  token: string | undefined;
  reportStatus = 200;
  inFlightMax = 0;
  #inFlight = 0;
  #version = 0;
  #nextRun = RUN_STEP;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request) => void this.#receive(request));
    // A client that leaves, or sends what is no HTTP, is part of the trial.
    this.#server.on("clientError", (_, socket) => socket.destroy());
  }

  /** Resolves to its URL. */
  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** The next lease begins here. */
  leaseFrom(version: number, run: number): void {
    [this.#version, this.#nextRun] = [version, run];
  }

  async #receive(request: IncomingMessage): Promise<void> {
    const { socket, url = "", method } = request;
    socket.on("error", () => {});
    const body = await text(request).catch(() => "");
    if (this.token !== undefined && request.headers.authorization !== `Bearer ${this.token}`) {
      return this.#reject(socket, 401, "unauthorized", `${url} without the token`);
    }
    const run = /\/runs\/(\d+)\/report$/.exec(url)?.[1];
    if (run !== undefined && url === pathOf("report", { namespace: DEFAULT_NAMESPACE, run })) {
      return this.#noteReport(socket, Number(run), body);
    }
    const isLease = method === "POST" && url === pathOf("leases", { namespace: DEFAULT_NAMESPACE });
    if (!isLease) return this.#reject(socket, 404, "not_found", `${method} ${url} is not a route of the kit`);
    const parsed = leaseRequestSchema.safeParse(jsonIn(body));
    const isJson = /^application\/json\b/.test(request.headers["content-type"] ?? "");
    if (!isJson || !parsed.success) {
      const reason = isJson ? JSON.stringify(parsed.error?.issues[0]) : "its content-type is not application/json";
      return this.#reject(socket, 400, "invalid_request", `lease request ${body.slice(0, 300)}: ${reason}`);
    }
    await this.#answer({ atMs: performance.now(), body: parsed.data }, socket);
  }

  async #answer(request: ReceivedRequest, socket: Socket): Promise<void> {
    this.requests.push(request);
    if (request.body.report !== undefined) this.reports.push(request.body.report);
    this.inFlightMax = Math.max(this.inFlightMax, ++this.#inFlight);
    const lease = this.#lease(request.body);
    const answer = this.answers.shift() ?? this.always;
    if (answer.flaw === undefined) this.granted.push(lease);
    else this.flawed.push({ lease, flaw: answer.flaw });
    await answer.respond(lease, socket);
    this.#inFlight--;
  }

  #lease({ nonce, runCount: wanted }: LeaseRequest): Lease {
    const runCount = Math.min(wanted, this.runCountMax);
    const [version, firstRun] = [this.#version, this.#nextRun];
    this.#nextRun = Math.min(firstRun + Math.max(runCount, RUN_STEP), RUN_MAX);
    const proof = String(ledgerIdOf(version, firstRun + runCount - 1)).padStart(43, "proof");
    const { storeId } = this;
    return { namespace: DEFAULT_NAMESPACE, storeId, version, firstRun, runCount, leasedAtMs: Date.now(), nonce, proof };
  }

  #noteReport(socket: Socket, run: number, body: string): void {
    const parsed = reportRequestSchema.safeParse(jsonIn(body));
    if (!parsed.success) return this.#reject(socket, 400, "invalid_request", `report ${body.slice(0, 300)}`);
    this.reports.push({ run, ...parsed.data });
    socket.end(response(this.reportStatus, this.reportStatus === 200 ? { noted: true } : refusal("internal_error")));
  }

  #reject(socket: Socket, status: number, code: string, message: string): void {
    this.invalid.push(message);
    socket.end(response(status, { code, message }));
  }
}

export function refusal(code: string, retryAfterMs?: number) {
  return { code, message: `the script rejects: ${code}`, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

function jsonIn(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
