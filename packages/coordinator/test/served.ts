/** A coordinator on a store in memory, behind an HTTP server on a free port, for one test or for each. */
import { expect, onTestFinished } from "vitest";
import { Coordinator, type CoordinatorOptions } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { createServer, type ServerOptions } from "../src/http/server.js";
import { SILENT_LOG } from "../src/log.js";
import { holder, LEASE_NONCE } from "./commands-for-test.js";
import { describedCodes } from "./described-api.js";
import { GatedStore } from "./gated-store.js";

/** The body of a request for a lease, sent long ago: a holder's clock may be behind. */
export function leaseRequest(own: object = {}) {
  const sentAtMs = 1_700_000_000_000;
  return { runCount: 1, nonce: LEASE_NONCE, holder, lastRun: null, proof: null, sentAtMs, ...own };
}

interface Response {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed; undefined where the text is none. */
  // biome-ignore lint/suspicious/noExplicitAny: each test knows its shape
  readonly body: any;
}

async function fetched(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, init);
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") && text !== "";
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
}

export interface ServedOptions extends Partial<Omit<ServerOptions, "coordinator">> {
  readonly namespaces?: readonly string[];
  readonly host?: string;
  readonly own?: Partial<CoordinatorOptions>;
}

/** `own`: of the coordinator. Without a store of its own it has one whose leases can wait. Each error must be described in OpenAPI. */
export async function served({ namespaces = ["main"], host = "127.0.0.1", own = {}, ...options }: ServedOptions = {}) {
  const events = options.events ?? new EventHub(SILENT_LOG);
  const store = new GatedStore();
  const coordinator = new Coordinator({ store, name: "test", log: events, ...own });
  for (const namespace of namespaces) await coordinator.initNamespace(namespace);
  const server = createServer({ coordinator, release: "1.2.3", events, ...options });
  onTestFinished(() => server.stop());
  const url = await server.listen({ host, port: 0 });
  const port = Number(new URL(url).port);
  const call = async (method: string, path: string, body?: unknown, own: Readonly<Record<string, string>> = {}) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const headers = body === undefined ? own : { "content-type": "application/json", ...own };
    const response = await fetched(url + path, { method, headers, ...(body !== undefined && { body: text }) });
    const codes = response.status < 400 ? undefined : describedCodes(method, path);
    if (codes !== undefined) expect(codes, `${method} ${path}`).toContain(response.body.code);
    return response;
  };
  const get = (path: string, headers?: Readonly<Record<string, string>>) => call("GET", path, undefined, headers);
  const post = (path: string, body: unknown, headers?: Readonly<Record<string, string>>) =>
    call("POST", path, body, headers);
  const lease = (request: object = {}, namespace = "main") =>
    post(`/v1/namespaces/${namespace}/leases`, leaseRequest(request));
  const mark = async () => (await store.readNamespace("main")).highWaterMark;
  return { store, coordinator, events, server, url, port, place: { host, port }, call, get, post, lease, mark };
}
