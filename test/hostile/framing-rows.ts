/** Requests whose end two programs would see in different places, and what hides behind such an end. */
import { LEASES, leaseBody, type RequestParts, type Row, request, rowOf, type Target } from "./row.js";

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const END = "0\r\n\r\n";

/** A lease that is right in itself: smuggled, it must not be taken. */
const hidden = (target: Target) => request(target, { body: leaseBody() }).toString("latin1");

const CODINGS: readonly [input: string, lines: readonly string[]][] = [
  ["chunked, as it should be", ["Transfer-Encoding: chunked"]],
  ["CHUNKED", ["Transfer-Encoding: CHUNKED"]],
  ["identity", ["Transfer-Encoding: identity"]],
  ["xchunked", ["Transfer-Encoding: xchunked"]],
  ["gzip, chunked", ["Transfer-Encoding: gzip, chunked"]],
  ["chunked, identity", ["Transfer-Encoding: chunked, identity"]],
  ["chunked twice", ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]],
  ["chunked, then identity (TE.TE)", ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"]],
  ["a vertical tab before chunked", ["Transfer-Encoding: \u000bchunked"]],
  ["in quotes", ['Transfer-Encoding: "chunked"']],
  ["empty", ["Transfer-Encoding:"]],
];

const LENGTHS: readonly [input: string, parts: RequestParts, status?: number][] = [
  ["none", { length: null }],
  ["twice the same", { lines: [`Content-Length: ${leaseBody().length}`] }],
  ["twice, and different (CL.CL)", { lines: ["Content-Length: 0"] }],
  ["a list", { length: null, lines: ["Content-Length: 5, 5"] }],
  ["with a plus", { length: null, lines: ["Content-Length: +5"] }],
  ["negative", { length: null, lines: ["Content-Length: -1"] }],
  ["hexadecimal", { length: null, lines: ["Content-Length: 0x10"] }],
  ["with an exponent", { length: null, lines: ["Content-Length: 1e2"] }],
  ["with a point", { length: null, lines: ["Content-Length: 5.0"] }],
  ["empty", { length: null, lines: ["Content-Length:"] }],
  ["a blank in it", { length: null, lines: ["Content-Length: 1 0"] }],
  ["of 25 digits", { length: null, lines: ["Content-Length: 9999999999999999999999999"] }],
  ["4 GiB", { length: 2 ** 32 }, 413],
];

const CHUNKS: readonly [input: string, body: string][] = [
  ["a size that is none", "zz\r\n{}\r\n"],
  ["a negative size", "-1\r\n{}\r\n"],
  ["a size of 20 digits", "ffffffffffffffffffff\r\n{}"],
  ["a chunk longer than its size", `2\r\n${leaseBody()}\r\n${END}`],
  ["a lease, and then a broken chunk", `${chunk(leaseBody())}zz\r\n`],
  ["a lease, and never an end", chunk(leaseBody())],
  ["an extension with a line break", `1;a\nb\r\n{\r\n${END}`],
];

/** One request, said to be of a length that it is not. */
const withLength = (target: Target, length: number, body: string) =>
  request(target, { body, length, keepsAlive: true });

export const FRAMING_ROWS: readonly Row[] = [
  ...CODINGS.map(([input, lines]) =>
    rowOf("transfer-encoding", input, 400, (target) =>
      request(target, {
        method: "POST",
        length: null,
        type: "application/json",
        lines,
        keepsAlive: true,
        body: chunk(leaseBody()) + END,
      }),
    ),
  ),
  ...CHUNKS.map(([input, body]) =>
    rowOf("chunks", input, 400, (target) =>
      request(target, { length: null, lines: ["Transfer-Encoding: chunked"], keepsAlive: true, body }),
    ),
  ),
  ...LENGTHS.map(([input, parts, status = 400]) =>
    rowOf("content-length", input, status, (target) =>
      request(target, { body: leaseBody(), keepsAlive: true, ...parts }),
    ),
  ),
  rowOf("smuggling", "CL.TE: both, and a lease behind the last chunk", 400, (target) => {
    const body = END + hidden(target);
    return request(target, { body, lines: ["Transfer-Encoding: chunked"], keepsAlive: true });
  }),
  rowOf("smuggling", "TE.CL: both, and a lease within the first chunk", 400, (target) => {
    const body = chunk(hidden(target)) + END;
    return request(target, { body, length: 4, lines: ["Transfer-Encoding: chunked"], keepsAlive: true });
  }),
  rowOf("smuggling", "TE after CL on two lines", 400, (target) =>
    request(target, { body: END + hidden(target), lines: ["Transfer-Encoding:", "\tchunked"], keepsAlive: true }),
  ),
  rowOf("smuggling", "a GET with a lease for a body", 400, (target) => {
    const body = hidden(target);
    return request(target, { method: "GET", path: "/healthz", type: null, body, keepsAlive: true });
  }),
  rowOf("smuggling", "a refused head, and a right lease behind it", 400, (target) => [
    Buffer.concat([request(target, { path: "/healthz", host: "", keepsAlive: true }), Buffer.from(hidden(target))]),
  ]),
  rowOf("smuggling", "a chunked request, and a right lease behind it", 400, (target) => [
    Buffer.concat([
      request(target, { path: LEASES, method: "POST", lines: ["Transfer-Encoding: chunked"], keepsAlive: true }),
      Buffer.from(END + hidden(target)),
    ]),
  ]),
  rowOf("smuggling", "a refused head, and a right lease a moment later", 400, (target) => [
    request(target, { path: "//", keepsAlive: true }),
    20,
    hidden(target),
  ]),
  rowOf("smuggling", "a body longer than told, the rest of it garbage", 400, (target) =>
    withLength(target, 10, leaseBody()),
  ),
  rowOf("smuggling", "a body cut where a header line could begin", [400, 400], (target) =>
    withLength(target, 2, "{}X-Forged: 1\r\n\r\n"),
  ),
  rowOf("lines", "LF only", 400, () => `POST ${LEASES} HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}`),
  rowOf("lines", "LF after the first line only", 400, () => `GET /healthz HTTP/1.1\nHost: x\r\n\r\n`),
  rowOf("lines", "CR only", 400, () => `GET /healthz HTTP/1.1\rHost: x\r\r`),
  rowOf("lines", "a line break in the first line", 400, () => "GET /healthz\r\n HTTP/1.1\r\nHost: x\r\n\r\n"),
  rowOf("lines", "a NUL before the method", 400, (target) => `\u0000${request(target, { path: "/healthz" })}`),
  rowOf("lines", "a tab for a blank", 400, () => "GET\t/healthz\tHTTP/1.1\r\nHost: x\r\n\r\n"),
  rowOf("lines", "random bytes", 400, () =>
    Buffer.from(Array.from({ length: 256 }, (_, index) => (index * 73 + 200) % 256)),
  ),
  rowOf("lines", "a greeting of TLS", 400, () => Buffer.from("16030100c8010000c40303", "hex")),
  rowOf("lines", "a greeting of SSH", 400, () => "SSH-2.0-OpenSSH_9.9\r\n"),
  rowOf("lines", "a command of Redis", 400, () => "*1\r\n$8\r\nFLUSHALL\r\n"),
  rowOf(
    "pipeline",
    "a right lease, and garbage behind it",
    [201, 400],
    (target) => [
      Buffer.concat([request(target, { body: leaseBody(), keepsAlive: true }), Buffer.from("garbage\r\n\r\n")]),
    ],
    { grantedRuns: 1 },
  ),
  rowOf(
    "pipeline",
    "a right lease, and a broken head behind it",
    [201, 400],
    (target) => [
      Buffer.concat([
        request(target, { body: leaseBody(), keepsAlive: true }),
        request(target, { host: null, body: leaseBody() }),
      ]),
    ],
    { grantedRuns: 1 },
  ),
  rowOf(
    "pipeline",
    "a right lease, a chunked one, and a right one behind it",
    [201, 400],
    (target) => [
      Buffer.concat([
        request(target, { body: leaseBody(), keepsAlive: true }),
        request(target, {
          length: null,
          lines: ["Transfer-Encoding: chunked"],
          keepsAlive: true,
          body: chunk(leaseBody()) + END,
        }),
        request(target, { body: leaseBody() }),
      ]),
    ],
    { grantedRuns: 1 },
  ),
  rowOf("pipeline", "half a body that ends the connection, and a right lease behind it", 400, (target) => [
    Buffer.concat([request(target, { body: "{", keepsAlive: true }), request(target, { body: leaseBody() })]),
  ]),
  rowOf(
    "pipeline",
    "a body that is none, and a right lease behind it",
    [400, 201],
    (target) => [
      Buffer.concat([request(target, { body: "{}", keepsAlive: true }), request(target, { body: leaseBody() })]),
    ],
    { grantedRuns: 1 },
  ),
];
