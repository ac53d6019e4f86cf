/** Namespaces, paths, queries, methods and typed call numbers that are none. */
import { LEASES, leaseBody, type RequestParts, type Row, request, rowOf } from "./row.js";

const STATUS = "/v1/namespaces/main/status";

const NAMESPACES: readonly [namespace: string, status?: number][] = [
  ["{main}"],
  ["%7Bmain%7D"],
  ["*"],
  ["m*n"],
  ["m[a]in"],
  ["m?in", 404],
  ["main%3Frecord"],
  [".."],
  ["%2e%2e"],
  ["..%2fmain"],
  ["../main"],
  ["main/../main"],
  ["main/..%2f"],
  ["main%00"],
  ["main%0a"],
  ["main%20"],
  ["main%252e"],
  ["m%61in"],
  ["m%C3%A4in"],
  ["MAIN"],
  [".main"],
  ["-main"],
  ["main:record"],
  ["main;v=1"],
  [""],
  ["__proto__"],
  ["x".repeat(64)],
  ["x".repeat(300)],
  ["constructor", 404],
];

const PATHS: readonly [input: string, parts: RequestParts, status?: number][] = [
  ["a whole address", { path: `http://coordinator${STATUS}` }],
  ["a whole address of another server", { path: "http://elsewhere.example/" }],
  ["an asterisk", { path: "*" }],
  ["an authority", { path: "coordinator:80" }],
  ["two slashes before it", { path: `/${STATUS}` }],
  ["two slashes in it", { path: "/v1//namespaces" }],
  ["a dot segment", { path: "/v1/./namespaces" }],
  ["two dots", { path: "/console/../v1/namespaces" }],
  ["two dots for a call number", { path: "/v1/namespaces/main/call-numbers/.." }],
  ["escaped dots", { path: "/console/%2e%2e/v1/namespaces" }],
  ["an escaped slash", { path: "/v1%2fnamespaces" }],
  ["an escaped backslash", { path: "/v1/%5c/namespaces" }],
  ["a backslash", { path: "/v1\\namespaces" }],
  ["a fragment", { path: `${STATUS}#a` }],
  ["an escaped NUL", { path: "/v1/namespaces%00" }],
  ["an escaped line break and header", { path: "/healthz%0d%0aX-Forged:%201" }],
  ["a byte above 127", { path: "/v1/n\u00e4mespaces" }],
  ["a half escape", { path: "/v1/namespaces/%4/status" }],
  ["a false escape", { path: "/v1/namespaces/%zz/status" }],
  ["9 KiB", { path: `/${"a".repeat(9_000)}` }, 431],
  ["an unknown one", { path: "/admin" }, 404],
  ["init, which is not there", { path: "/v1/namespaces/main/init", body: "{}" }, 404],
  ["a query where none is", { path: `${STATUS}?a=1` }],
  ["an empty query where none is", { path: `${STATUS}?` }],
  ["a query beside a lease", { path: `${LEASES}?runCount=64`, body: leaseBody() }],
  ["a query of health", { path: "/healthz?verbose" }],
  ["an unknown key in a query", { path: "/v1/namespaces/main/runs?admin=1" }],
  ["a key of a query twice", { path: "/v1/namespaces/main/runs?limit=1&limit=500" }],
  ["__proto__ in a query", { path: "/v1/namespaces/main/runs?__proto__=1" }],
  ["an ANSI sequence in a query", { path: "/v1/namespaces/main/runs?holder=%1b%5b2J" }],
  ["broken UTF-8 in a query", { path: "/v1/namespaces/main/runs?holder=%ff" }],
  ["a half escape in a query", { path: "/v1/namespaces/main/runs?holder=%" }],
  ["a run that is none", { path: "/v1/namespaces/main/runs/-1" }],
  ["a run beyond all", { path: "/v1/namespaces/main/runs/8589934592" }],
];

const METHODS: readonly [method: string, status: number, parts?: RequestParts][] = [
  ["GET", 405],
  ["HEAD", 405],
  ["PUT", 405, { body: leaseBody() }],
  ["PATCH", 405, { body: leaseBody() }],
  ["DELETE", 405],
  ["OPTIONS", 405, { lines: ["Origin: http://elsewhere.example", "Access-Control-Request-Method: POST"] }],
  ["TRACE", 405],
  ["PROPFIND", 405],
  ["CONNECT", 405, { path: "elsewhere.example:443" }],
  ["BREW", 400, { body: leaseBody() }],
  ["post", 400, { body: leaseBody() }],
  ["GET", 405, { lines: ["X-HTTP-Method-Override: POST"] }],
];

const VERSIONS: readonly [version: string, status?: number][] = [
  ["HTTP/1.0"],
  ["HTTP/0.9"],
  ["HTTP/1.2"],
  ["HTTP/2.0"],
  ["http/1.1"],
  ["HTTP/1.1 HTTP/1.1"],
];

/** What Node reads as if it were right, and does not show: each can be read in one way only, and has its lease. */
const READ_AS_RIGHT: readonly [input: string, parts: RequestParts][] = [
  ["RTSP/1.1", { version: "RTSP/1.1" }],
  ["two blanks before the path", { path: ` ${LEASES}` }],
  ["three blanks before the version", { version: "  HTTP/1.1" }],
];

/** Typed texts that are no call number: the answer says so. */
const CALL_NUMBERS: readonly [input: string, typed: string, status?: number][] = [
  ["seven characters", "2VznWE2"],
  ["nine characters", "2VznWE2ii"],
  ["beyond the greatest", "zzzzzzzz"],
  ["a character of no digit", "2Vzn-E2i"],
  ["an escaped slash", "2Vzn%2FE2i"],
  ["dots that are escaped", "%2e%2e%2f%2e%2e"],
  ["an escaped NUL", "2Vzn%00E2i"],
  ["an ANSI sequence", "%1b%5b31m"],
  ["text turned right to left", "%E2%80%AE2VznWE"],
  ["digits of another script", "%D9%A0%D9%A1%D9%A2%D9%A3%D9%A4%D9%A5%D9%A6%D9%A7"],
  ["an encoded surrogate", "%ED%A0%80", 400],
  ["300 characters", "a".repeat(300), 400],
];

export const ADDRESS_ROWS: readonly Row[] = [
  ...NAMESPACES.map(([namespace, status = 400]) =>
    rowOf("namespace", namespace.slice(0, 40), status, (target) =>
      request(target, { path: `/v1/namespaces/${namespace}/leases`, body: leaseBody() }),
    ),
  ),
  ...PATHS.map(([input, parts, status = 400]) => rowOf("path", input, status, (target) => request(target, parts))),
  ...METHODS.map(([method, status, parts]) =>
    rowOf("method", `${method}${parts?.lines ? " and more" : ""}`, status, (target) =>
      request(target, { method, ...parts }),
    ),
  ),
  ...VERSIONS.map(([version, status = 400]) =>
    rowOf("version", version, status, (target) => request(target, { version, body: leaseBody() })),
  ),
  ...READ_AS_RIGHT.map(([input, parts]) =>
    rowOf("first line", input, 201, (target) => request(target, { ...parts, body: leaseBody() }), { grantedRuns: 1 }),
  ),
  rowOf("version", "none, as in HTTP/0.9", 400, () => `GET ${STATUS}\r\n\r\n`),
  rowOf("version", "the preface of HTTP/2", 400, () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  ...CALL_NUMBERS.map(([input, typed, status = 200]) =>
    rowOf(
      "call number",
      input,
      status,
      (target) => request(target, { path: `/v1/namespaces/main/call-numbers/${typed}` }),
      { isAnswered: status === 200 },
    ),
  ),
];
