/** Headers that no caller of ours sends, or that two programs read differently; and what browsers send for pages of other sites. */
import { createHash } from "node:crypto";
import { leaseBody, type RequestParts, type Row, request, rowOf, SECRET, type Target } from "./row.js";

const body = () => leaseBody();

const HEADERS: readonly [input: string, parts: RequestParts, status?: number][] = [
  ["no Host", { host: null }],
  ["two Hosts", { lines: ["Host: other"] }],
  ["an empty Host", { host: "" }],
  ["a Host with a path", { host: "coordinator/v1" }],
  ["a Host with a user", { host: "root@coordinator" }],
  ["a Host with a blank", { host: "coordinator other" }],
  ["a Host with a port that is none", { host: "coordinator:80x" }],
  ["no Content-Type", { type: null }, 415],
  ["text/plain", { type: "text/plain" }, 415],
  ["text/json", { type: "text/json" }, 415],
  ["a form", { type: "application/x-www-form-urlencoded" }, 415],
  ["several parts", { type: "multipart/form-data; boundary=a" }, 415],
  ["another charset", { type: "application/json; charset=utf-16" }, 415],
  ["two types in one", { type: "application/json, text/plain" }, 415],
  ["a type that only begins so", { type: "application/jsonp" }, 415],
  ["two Content-Types", { lines: ["Content-Type: text/plain"] }],
  ["Content-Encoding: gzip", { lines: ["Content-Encoding: gzip"] }],
  ["Expect: 100-continue", { lines: ["Expect: 100-continue"] }],
  ["Expect: anything", { lines: ["Expect: anything"] }],
  ["an upgrade to websocket", { lines: ["Upgrade: websocket", "Sec-WebSocket-Version: 13"] }],
  ["an upgrade to h2c", { lines: ["Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"] }],
  ["two Authorizations", { lines: [`Authorization: Bearer ${SECRET}`, `Authorization: Bearer ${SECRET}`] }],
  ["65 headers", { lines: Array.from({ length: 65 }, (_, index) => `X-${index}: a`) }, 431],
  ["a header of 9 KiB", { lines: [`X-Long: ${"a".repeat(9_000)}`] }, 431],
  ["2,000 small headers", { lines: Array.from({ length: 2_000 }, () => "a: b") }, 431],
  ["a Host behind 1,100 other headers", { lines: [...Array.from({ length: 1_100 }, () => "a:"), "Host: other"] }, 431],
  ["a header's name with a blank", { lines: ["X Name: a"] }],
  ["a blank before the colon", { lines: ["X-Name : a"] }],
  ["a header without a colon", { lines: ["X-Name"] }],
  ["a header without a name", { lines: [": a"] }],
  ["NUL in a header", { lines: ["X-Name: a\u0000b"] }],
  ["a lone CR in a header", { lines: ["X-Name: a\rX-Other: b"] }],
  ["an ANSI sequence in a header", { lines: ["X-Name: \u001b[2J"] }],
  ["a header on two lines", { lines: ["X-Name: a", " b"] }],
  ["Transfer-Encoding on two lines", { lines: ["Transfer-Encoding:", " chunked"] }],
  ["a blank before the first header", { lines: [" X-Name: a"] }],
  ["Origin: another site", { lines: ["Origin: http://elsewhere.example"] }, 403],
  ["Origin: null", { lines: ["Origin: null"] }, 403],
  ["a page of another site", { lines: ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"] }, 403],
  ["a page of a neighbouring site", { lines: ["Sec-Fetch-Site: same-site"] }, 403],
  [
    "a form of another site",
    { lines: ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"] },
    403,
  ],
];

export const HEAD_ROWS: readonly Row[] = HEADERS.map(([input, parts, status = 400]) =>
  rowOf(status === 403 ? "origin" : "header", input, status, (target) => request(target, { body: body(), ...parts })),
);

/** Each is answered 401, or 400 where it is no header at all. */
const AUTHORIZATIONS: readonly [input: string, authorization: string | null, status?: number][] = [
  ["none", null],
  ["an empty one", ""],
  ["Bearer alone", "Bearer"],
  ["Bearer and a blank", "Bearer "],
  ["another scheme", `Basic ${Buffer.from(`root:${SECRET}`).toString("base64")}`],
  ["the scheme in one word with the token", `Bearer${SECRET}`],
  ["an unknown token", `Bearer ${SECRET}`],
  ["two tokens", `Bearer ${SECRET} ${SECRET}`],
  ["two tokens with a comma", `Bearer ${SECRET}, Bearer ${SECRET}`],
  ["a token in quotes", `Bearer "${SECRET}"`],
  ["a token of 4,000 characters", `Bearer ${SECRET.repeat(170)}`],
  ["a token of one character", "Bearer a"],
  ["a token with bytes above 127", `Bearer ${SECRET}\u00e4\u00ff`],
  ["a token with a NUL", `Bearer ${SECRET}\u0000`, 400],
  ["the hash of a token", `Bearer ${"0123456789abcdef".repeat(4)}`],
];

/** Tokens that are good for something else, and what comes near to a good one. */
const OTHERS: readonly [input: string, tokenOf: (target: Target) => string, status: number][] = [
  ["a token that is cut short", ({ leaseToken }) => leaseToken.slice(0, -1), 401],
  ["a token with one character more", ({ leaseToken }) => `${leaseToken}A`, 401],
  ["a token in another case", ({ leaseToken }) => swapped(leaseToken), 401],
  ["a token without its prefix", ({ leaseToken }) => leaseToken.slice(3), 401],
  ["the SHA-256 of a good token", ({ leaseToken }) => createHash("sha256").update(leaseToken).digest("hex"), 401],
  ["a token that may look, and takes no run", ({ operatorToken }) => operatorToken, 403],
  ["a token of another namespace", ({ foreignToken }) => foreignToken, 403],
];

export const AUTHORIZATION_ROWS: readonly Row[] = [
  ...AUTHORIZATIONS.map(([input, authorization, status = 401]) =>
    rowOf("authorization", input, status, (target) => request(target, { body: body(), authorization })),
  ),
  ...OTHERS.map(([input, tokenOf, status]) =>
    rowOf("authorization", input, status, (target) =>
      request(target, { body: body(), authorization: `Bearer ${tokenOf(target)}` }),
    ),
  ),
  rowOf("authorization", "a token that leases, and shows nothing", 403, (target) =>
    request(target, { path: "/v1/namespaces/main/runs", authorization: `Bearer ${target.leaseToken}` }),
  ),
  rowOf("authorization", "labels by a token that leases", 403, (target) =>
    request(target, {
      path: "/v1/namespaces/main/labels",
      body: JSON.stringify({ labels: {} }),
      authorization: `Bearer ${target.leaseToken}`,
    }),
  ),
  rowOf("authorization", "a token in the query", 400, (target) =>
    request(target, {
      body: body(),
      authorization: null,
      path: `/v1/namespaces/main/leases?token=${target.leaseToken}`,
    }),
  ),
];

function swapped(token: string): string {
  return token.toUpperCase() === token ? token.toLowerCase() : token.toUpperCase();
}
