/** Requests as bytes: those that the coordinator knows, and what broken and hostile programs make of them. */
import type { Draw } from "./draw.js";
import { mutatedJson } from "./json-mutation.js";
import { mutated } from "./mutation.js";

/** Between the requests of a batch, each of which has a connection of its own. */
export const BATCH_SEPARATOR = Buffer.from("\n--8<--\n");
const BATCH_MAX = 24;

const NONCE = "nonce-0123456789";
const HOLDER = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };
const LEASE = { runCount: 2, nonce: NONCE, holder: HOLDER, lastRun: null, receipt: null, sentAtMs: 1_700_000_000_000 };
const NS = "/v1/namespaces/main";

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

const VALID: readonly Asked[] = [
  { method: "POST", path: `${NS}/leases`, body: LEASE },
  { method: "POST", path: `${NS}/leases`, body: { ...LEASE, runCount: 64, lastRun: 1, spareRunCount: 0 } },
  { method: "POST", path: `${NS}/runs/1/report`, body: { nonce: NONCE, lastSequence: 7, state: "open" } },
  { method: "POST", path: `${NS}/labels`, body: { labels: { archive: "lists" } } },
  { method: "GET", path: `${NS}/runs?limit=3&holder=importer&label=a%3Db&leasedFromMs=1&cursor=5` },
  { method: "GET", path: `${NS}/runs/1` },
  { method: "GET", path: `${NS}/export?format=csv&toRun=9` },
  { method: "GET", path: `${NS}/call-numbers/2VznWE2i?neighbours=no` },
  { method: "GET", path: `${NS}/status` },
  { method: "GET", path: `${NS}/capacity` },
  { method: "GET", path: `${NS}/history?windowMs=3600000` },
  ...["/v1/namespaces", "/healthz", "/readyz", "/metrics", "/console/", "/openapi.json", "/v1/events"].map((path) => {
    return { method: "GET", path };
  }),
  { method: "GET", path: "/v1/public/namespaces/main/call-numbers/2VznWE2i" },
];

const METHODS = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "TRACE",
  "CONNECT",
  "PRI",
  "get",
  "",
  "G\0T",
  "QUERY",
];
const VERSIONS = ["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.10", "http/1.1", "", "RTSP/1.0"];
const PATH_PIECES = [
  ..."/ // /.. /%2e%2e/ /%00 %zz ? ?? # ?__proto__=x &label= {*} * %F0%9F%98%80 /%2F ; : @ \\ http://x/ %ff".split(" "),
  "x".repeat(300),
  "/a".repeat(2_000),
];
const HEADERS = [
  ..."host: x|host:|host: a, b|Host : x|content-length: 5|content-length: -1|content-length: 0|content-length: +3".split(
    "|",
  ),
  ..."content-length: 99999999999999999999|content-length: 1, 1|content-length : 4|content-length: 0x5".split("|"),
  ..."transfer-encoding: chunked|Transfer-Encoding: xchunked|transfer-encoding: chunked, identity".split("|"),
  ..."transfer-encoding: identity|transfer-encoding:\tchunked|transfer-encoding : chunked".split("|"),
  ..."connection: close|connection: keep-alive, upgrade|connection: \x00|expect: 100-continue|expect: x".split("|"),
  ..."upgrade: websocket|upgrade: h2c|content-type: text/plain|content-type: application/json; charset=utf-16".split(
    "|",
  ),
  ..."content-type: application/json;|content-type:|content-encoding: gzip|origin: http://evil.example".split("|"),
  ..."accept: */*|cookie: a=b|authorization: Bearer x|last-event-id: 1|last-event-id: -1e9|range: bytes=0-1".split("|"),
  ..."traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01|traceparent: \xff|x-http-method-override: GET".split(
    "|",
  ),
  ..." folded|: nameless|no colon|x: \x1b[31m|x: a\nb: c|__proto__: x|constructor: x|\x00: x".split("|"),
  `x: ${"y".repeat(20_000)}`,
];
const BODY_PIECES = [
  "0\r\n\r\n",
  "5\r\nabcde\r\n",
  "FFFFFFFFFFFFFFFFF\r\n",
  "-1\r\n",
  "2;x=y\r\n{}\r\n",
  "\r\n",
  "x".repeat(5_000),
];
const SMUGGLED = "POST /v1/namespaces/main/leases HTTP/1.1\r\nhost: localhost\r\n\r\n";
const WORDS = [
  ...HEADERS.slice(0, 40),
  ...BODY_PIECES.slice(0, 6),
  "\r\n",
  "\n",
  " HTTP/1.1\r\n",
  SMUGGLED,
  ...METHODS,
].map((word) => Buffer.from(word, "latin1"));

export interface Wishes {
  /** Which of them is asked for; the first one more often. Default: `main`. */
  readonly namespaces?: readonly string[];
  /** Lines of heads, of which most requests have one. Default: none has any. */
  readonly authorizations?: readonly string[];
  /** Of so many requests one has bytes that were changed, and one has headers that were put in. Default 3. */
  readonly brokenOnceIn?: number;
}

export function requestBatch(draw: Draw, wishes: Wishes = {}): Buffer {
  const requests = Array.from({ length: 1 + draw.below(BATCH_MAX) }, () => connectionBytes(draw, wishes));
  return Buffer.concat(requests.flatMap((request, index) => (index === 0 ? [request] : [BATCH_SEPARATOR, request])));
}

/** One request or several, pipelined. */
function connectionBytes(draw: Draw, wishes: Wishes): Buffer {
  const count = draw.onceIn(4) ? 1 + draw.below(4) : 1;
  return Buffer.concat(Array.from({ length: count }, () => requestBytes(draw, wishes)));
}

function requestBytes(draw: Draw, { namespaces = [], authorizations = [], brokenOnceIn = 3 }: Wishes): Buffer {
  const asked = draw.onceIn(2) ? (VALID[0] as Asked) : draw.oneOf(VALID);
  const method = draw.onceIn(8) ? draw.oneOf(METHODS) : asked.method;
  const named = namespaces.length > 0 && draw.onceIn(3) ? draw.oneOf(namespaces) : "main";
  const known = asked.path.replace("/main/", `/${named}/`);
  const path = draw.onceIn(6) ? wrongPath(known, draw) : known;
  const version = draw.onceIn(12) ? draw.oneOf(VERSIONS) : "HTTP/1.1";
  const isChunked = draw.onceIn(5);
  const body = asked.body === undefined ? Buffer.alloc(0) : bodyOf(asked.body, draw);
  const headers = [draw.onceIn(20) ? draw.oneOf(HEADERS) : "host: localhost", ...ownHeaders(asked, body, isChunked)];
  if (authorizations.length > 0 && !draw.onceIn(8)) headers.push(draw.oneOf(authorizations));
  for (let count = draw.onceIn(brokenOnceIn) ? 1 + draw.below(3) : 0; count > 0; count--) {
    headers.splice(draw.below(headers.length + 1), 0, draw.oneOf(HEADERS));
  }
  const head = Buffer.from(`${method} ${path} ${version}\r\n${headers.join("\r\n")}\r\n\r\n`, "latin1");
  const bytes = Buffer.concat([head, isChunked && asked.body !== undefined ? chunked(body, draw) : body]);
  return draw.onceIn(brokenOnceIn) ? mutated(bytes, draw, { words: WORDS, countMax: 3 }) : bytes;
}

function ownHeaders({ body }: Asked, bytes: Buffer, isChunked: boolean): readonly string[] {
  if (body === undefined) return [];
  return [
    "content-type: application/json",
    isChunked ? "transfer-encoding: chunked" : `content-length: ${bytes.length}`,
  ];
}

function bodyOf(value: unknown, draw: Draw): Buffer {
  return draw.onceIn(2) ? Buffer.from(JSON.stringify(value)) : mutatedJson(value, draw);
}

function wrongPath(path: string, draw: Draw): string {
  const at = draw.below(path.length + 1);
  return path.slice(0, at) + draw.oneOf(PATH_PIECES) + path.slice(draw.onceIn(2) ? at : at + draw.below(8));
}

/** In chunks; now and then with one that can't be. */
function chunked(body: Buffer, draw: Draw): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const length = 1 + draw.below(60);
    const piece = body.subarray(at, at + length);
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
    if (draw.onceIn(20)) pieces.push(Buffer.from(draw.oneOf(BODY_PIECES)));
    at += length;
  }
  return Buffer.concat([...pieces, Buffer.from(draw.onceIn(10) ? draw.oneOf(BODY_PIECES) : "0\r\n\r\n")]);
}
