/** Malformed and oversized requests: none of them leases a run, shows a secret or ends the server, and each is logged with its client. */
import { ERROR_RULES, isErrorCode } from "@callnumber/protocol/api";
import fc from "fast-check";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { mutatedBytes } from "../../../test/mutated-bytes.js";
import { sized } from "../../../test/size-of-run.js";
import { EventHub } from "../src/events/events.js";
import { LeaseLimits } from "../src/limits/lease-limits.js";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";
import { makeToken } from "../src/tokens/tokens-file.js";
import { holder } from "./commands-for-test.js";
import { opened, sendBytes } from "./raw-client.js";
import { leaseRequest, served } from "./served.js";

const importer = makeToken({ role: "lease", namespaces: ["main"] }, new Set(), 1);
const AUTHORIZED = `authorization: Bearer ${importer.token}`;
const LEASES = "/v1/namespaces/main/leases";
const BODY = JSON.stringify(leaseRequest());

let { place, store, mark, get, post } = {} as Awaited<ReturnType<typeof served>>;
/** The log as it is written. */
let log: string;

beforeEach(async () => {
  log = "";
  const write = (line: string) => {
    log += line;
  };
  const limits = new LeaseLimits({ token: { atOnce: 1, perSecond: 0.001 } });
  const authenticator = new TokenAuthenticator([importer.record]);
  ({ place, store, mark, get, post } = await served({
    events: new EventHub(pino({ level: "debug" }, { write })),
    limits,
    authenticator,
  }));
  // A client that ends its half of the connection gets no response that comes later.
  await get("/healthz");
});

const logged = (event: string) =>
  log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === event);

/** Sends a request, and checks what holds after each of them. */
async function sent(bytes: string | Buffer) {
  const response = await sendBytes(place, [bytes], { thenEnd: true });
  expect(await mark()).toBe(0);
  expect((await sendBytes(place, [bytesOf("GET", "/healthz")])).statuses).toEqual([200]);
  expect(logged("internal_error")).toEqual([]);
  return response;
}

afterEach(() => expect(log).not.toContain(importer.token));

/** A request that ends its connection; `lines` replace those of the same name. */
function bytesOf(method: string, path: string, headers: readonly string[] = [], body = ""): string {
  return `${method} ${path} HTTP/1.1\r\n${["host: localhost", "connection: close", ...headers].join("\r\n")}\r\n\r\n${body}`;
}

/** A right lease, but for the headers that are added and the body. */
function lease(headers: readonly string[] = [], body = BODY): string {
  const own = ["content-type", "content-length"].every((name) => !headers.some((line) => line.startsWith(name)));
  const usual = own ? ["content-type: application/json", `content-length: ${Buffer.byteLength(body)}`] : [];
  return bytesOf("POST", LEASES, [AUTHORIZED, ...usual, ...headers], body);
}

const JSON_TYPE = "content-type: application/json";
const CHUNKED = [JSON_TYPE, "transfer-encoding: chunked"];
const LENGTH = `content-length: ${BODY.length}`;

test.each<[what: string, status: number, code: string | undefined, bytes: string | Buffer]>([
  ["bytes that are no HTTP", 400, "invalid_request", "garbage\r\n\r\n"],
  ["random bytes", 400, "invalid_request", Buffer.from(Array.from({ length: 256 }, (_, at) => (at * 73 + 200) % 256))],
  ["a TLS handshake", 400, "invalid_request", Buffer.from("16030100c8010000c40303", "hex")],
  ["a command for Redis", 400, "invalid_request", "*1\r\n$8\r\nFLUSHALL\r\n"],
  ["an unknown method", 400, "invalid_request", bytesOf("LEASE", LEASES, [AUTHORIZED])],
  ["no Host", 400, undefined, "GET /healthz HTTP/1.1\r\n\r\n"],
  ["a NUL in a header", 400, "invalid_request", bytesOf("GET", "/healthz", ["x-name: a\u0000b"])],
  ["a header on two lines", 400, "invalid_request", bytesOf("GET", "/healthz", ["x-name: a", " b"])],
  ["a header of 9 KiB", 431, "headers_too_large", bytesOf("GET", "/healthz", [`x-long: ${"a".repeat(9_000)}`])],
  ["a path of 9 KiB", 431, "headers_too_large", bytesOf("GET", `/${"a".repeat(9_000)}`)],
  ["a path that can't be decoded", 400, "invalid_request", bytesOf("GET", "/v1/namespaces/%zz/status", [AUTHORIZED])],
  [
    "a parameter of 300 characters",
    400,
    "invalid_request",
    bytesOf("GET", `/v1/namespaces/main/call-numbers/${"x".repeat(300)}`, [AUTHORIZED]),
  ],
  ["a path with dots", 404, "not_found", bytesOf("GET", "/v1/namespaces/../../etc/passwd", [AUTHORIZED])],
  ["a namespace that can't be", 403, "forbidden", bytesOf("GET", "/v1/namespaces/%00/status", [AUTHORIZED])],
  ["a query that no route takes", 400, "invalid_request", bytesOf("GET", "/healthz?a=b")],
  ["no token", 401, "unauthorized", bytesOf("POST", LEASES, [JSON_TYPE, LENGTH], BODY)],
  [
    "two tokens",
    401,
    "unauthorized",
    bytesOf("POST", LEASES, [`${AUTHORIZED}, ${importer.token}`, JSON_TYPE, LENGTH], BODY),
  ],
  ["a body of 5 KiB", 413, "body_too_large", lease([], `{"x":"${"a".repeat(5_000)}"}`)],
  ["a body that is said to have 4 GiB", 413, "body_too_large", lease([JSON_TYPE, `content-length: ${2 ** 32}`])],
  ["a chunked body of 5 KiB", 413, "body_too_large", lease(CHUNKED, `1400\r\n${" ".repeat(5_120)}\r\n0\r\n\r\n`)],
  ["a form", 415, "unsupported_media_type", lease(["content-type: application/x-www-form-urlencoded", LENGTH])],
  ["no content type", 415, "unsupported_media_type", lease([LENGTH])],
  ["a body without a length", 400, "invalid_request", lease([JSON_TYPE])],
  ["a negative length", 400, "invalid_request", lease([JSON_TYPE, "content-length: -1"])],
  ["two lengths", 400, "invalid_request", lease([JSON_TYPE, "content-length: 2", LENGTH])],
  ["a length and chunks", 400, "invalid_request", lease([...CHUNKED, LENGTH])],
  ["a chunk without a size", 400, "invalid_request", lease(CHUNKED, "zz\r\n{}\r\n")],
  [
    "a lease in a chunk, and then a broken one",
    400,
    "invalid_request",
    lease(CHUNKED, `${BODY.length.toString(16)}\r\n${BODY}\r\nzz\r\n`),
  ],
  ["a body that is no JSON", 400, "invalid_request", lease([], "{")],
  // With the broken byte replaced it would be valid.
  [
    "a body that is not UTF-8",
    400,
    "invalid_request",
    Buffer.from(lease([JSON_TYPE, LENGTH], BODY.replace("lists", "list\u00ff")), "latin1"),
  ],
  ["a body with an unknown key", 400, "invalid_request", lease([], BODY.replace("{", '{"x":1,'))],
  ["a body with __proto__", 400, "invalid_request", lease([], BODY.replace("{", '{"__proto__":{},'))],
])("%s is answered with %i and %s", async (_, status, code, bytes) => {
  const { text, statuses } = await sent(bytes);
  expect(statuses).toEqual([status]);
  if (code === undefined) return;
  expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4))).toMatchObject({ code });
  expect(text).toMatch(/\r\ncache-control: no-store\r\n/i);
  expect(text).toMatch(/\r\nx-content-type-options: nosniff\r\ncross-origin-resource-policy: same-origin\r\n/i);
});

test.each([
  ["a tunnel", "CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n"],
  ["a lease that breaks off", lease().slice(0, -5)],
])("%s is closed without a response of success", async (_, bytes) => {
  const { statuses, isClosed } = await sent(bytes);
  expect(statuses.filter((status) => status < 400)).toEqual([]);
  expect(isClosed).toBe(true);
});

test("a body that goes on after it was rejected as too large ends nothing, while its response waits for an earlier one", async () => {
  const openGate = store.closeGate();
  const socket = await opened(place);
  let text = "";
  socket.on("data", (chunk) => {
    text += String(chunk);
  });
  socket.write(lease().replace("connection: close\r\n", ""));
  const chunk = `1400\r\n${" ".repeat(5_120)}\r\n`;
  socket.write(lease(CHUNKED, chunk));
  await expect.poll(() => logged("request_rejected")).toMatchObject([{ code: "body_too_large" }]);
  socket.write(chunk.repeat(2));
  expect((await get("/healthz")).status).toBe(200);
  openGate();
  await expect.poll(() => text).toMatch(/^HTTP\/1\.1 201 [^]*HTTP\/1\.1 413 /);
  socket.destroy();
});

test("a rejection's message and log escape and shorten what a client sent", async () => {
  const key = `\u001b[2J\u202E\u009b${"k".repeat(3_000)}`;
  const { text } = await sent(lease([], JSON.stringify(leaseRequest({ [key]: 1 }))));
  const { message } = JSON.parse(text.slice(text.indexOf("\r\n\r\n")));
  expect(message).toContain("\\u001b[2J\\u{202e}\\u{9b}kkk");
  expect(message.length).toBeLessThan(600);
  const line = JSON.stringify(logged("request_rejected"));
  expect(line).toContain("kkk");
  expect(line.length).toBeLessThan(1_500);
});

test("a mutated body is answered as the API says, leases each run once and only as asked, and reaches no other object", async () => {
  const { post: open } = await served();
  const request = leaseRequest({ runCount: 2 });
  const { nonce } = request;
  const bodies = [
    request,
    { ...request, spareRunCount: 0 },
    { ...request, report: { run: 1, nonce, lastSequence: 7, state: "open" } },
  ];
  const numbers = "-0 -1 0 1 0.5 1e400 1e2 64 65 16384 1073741824 9007199254740992".split(" ");
  const texts = ["", "64", "\u0000", "\u001b[31m", "\u202e", "😀", "__proto__"].map((text) => JSON.stringify(text));
  const odd = fc.constantFrom("null", "true", "[]", "{}", '"\\ud800"', "[".repeat(1_500), ...numbers, ...texts);
  const written = fc
    .tuple(fc.constantFrom(...bodies.map((body) => JSON.stringify(body))), fc.nat(20), odd)
    .map(([text, at, value]) => {
      let member = 0;
      return text.replace(/:("[^"]*"|[^",{}[\]]+)/g, (all) => (member++ === at ? `:${value}` : all));
    });
  const words = [
    '"__proto__":{"polluted":true},',
    '"constructor":1,',
    '"nonce":"x",',
    "null",
    '"',
    "[",
    "{",
    "\\u0007",
  ];
  const bytes = mutatedBytes(
    bodies.map((body) => JSON.stringify(body)),
    words,
  ).map(String);
  let lastRun = 0;
  const property = fc.asyncProperty(fc.oneof(written, bytes), fc.boolean(), async (text, isReport) => {
    const path = isReport ? "/v1/namespaces/main/runs/1/report" : LEASES;
    const { status, body } = await open(path, text);
    if (status >= 400) {
      expect(isErrorCode(body.code) && body.code !== "internal_error").toBe(true);
      expect(ERROR_RULES[body.code as "overloaded"].httpStatus).toBe(status);
    } else if (!isReport) {
      const asked = JSON.parse(text);
      expect(asked).toMatchObject({ nonce: body.nonce, runCount: expect.any(Number) });
      expect(body.runCount).toBeLessThanOrEqual(asked.runCount);
      expect(body.firstRun).toBeGreaterThan(lastRun);
      lastRun = body.firstRun + body.runCount - 1;
    }
    expect({}).not.toHaveProperty("polluted");
    expect((await post(path, text)).status).toBe(401);
  });
  await fc.assert(property, { seed: inject("seed"), numRuns: sized(100, 2_000) });
  expect(lastRun).toBeGreaterThan(0);
});

/** All that moves, hides or turns text; a line break ends a line and is nowhere else. */
const UNPRINTABLE = /[^\P{C}\n]|[\p{Zl}\p{Zp}]/u;

describe("the log of a rejection", () => {
  const rejections = () => logged("request_rejected");
  const leased = async (own: object = {}, token = importer.token) =>
    (await post(LEASES, leaseRequest(own), { authorization: `Bearer ${token}` })).status;

  test("the log of a rejection names an importer that is too fast by its token, its holder and its address", async () => {
    expect([await leased(), await leased()]).toEqual([201, 429]);
    const { name, host } = holder;
    const client = { tokenId: importer.record.id, holder: { name, host }, remoteAddress: "127.0.0.1" };
    expect(rejections()).toEqual([expect.objectContaining({ code: "rate_limited", namespace: "main", ...client })]);
  });

  test("the log of a rejection names an unauthenticated client by its address alone: its body is not read", async () => {
    expect(await leased({}, `cn_${"A".repeat(43)}`)).toBe(401);
    const [line] = rejections();
    expect(line).toMatchObject({ code: "unauthorized", remoteAddress: "127.0.0.1" });
    expect(line).not.toHaveProperty("holder");
    expect(line).not.toHaveProperty("tokenId");
  });

  test.each([
    [20, "not_found", "/nowhere"],
    [20, "method_not_allowed", LEASES],
    [30, "invalid_request", "/healthz?a=b"],
  ])("the log of a rejection has the level %i for %s", async (level, code, path) => {
    await sent(bytesOf("GET", path));
    expect(rejections()).toEqual([expect.objectContaining({ level, code })]);
  });

  test("the log of a rejection names a client that does not speak HTTP by its address, at debug level", async () => {
    await sent("no HTTP\r\n\r\n");
    expect(rejections()).toEqual([expect.objectContaining({ level: 20, remoteAddress: "127.0.0.1" })]);
  });

  test.each([
    ["ends the line and begins another", 'x"}\n{"level":30,"msg":"lease","namespace":"main","firstRun":9}'],
    ["acts on a terminal", "\u001b[2J\u009b1m\u0007"],
    ["reverses, hides and breaks text", "\u202eabc\u200b\u2028\u2029\u0085"],
    ["is half a character", "\ud800"],
    ["is half a character where it is cut", `${"x".repeat(63)}😀`],
    ["is longer than any name", "n".repeat(1_500)],
  ])("the log of a rejection is one harmless line for a name or host that %s", async (_, name) => {
    for (const own of [{ name }, { host: name }])
      expect(await leased({ holder: { ...holder, ...own }, runCount: 0 })).toBe(400);
    expect(log).not.toMatch(UNPRINTABLE);
    for (const line of log.split("\n")) expect(line.length).toBeLessThan(4_096);
    expect(rejections()).toHaveLength(2);
    const named = { name: expect.any(String), host: expect.any(String) };
    for (const line of rejections()) expect(line["holder"]).toEqual(named);
    expect(logged("lease")).toEqual([]);
  });

  test.each(["x", { name: { toString: "x" } }, [], null])(
    "the log of a rejection has no holder where the body has %j",
    async (own) => {
      expect(await leased({ holder: own })).toBe(400);
      expect(rejections()).toEqual([expect.not.objectContaining({ holder: expect.anything() })]);
    },
  );

  test.each([
    ["a token of ours", importer.token],
    ["a JSON web token", "eyJhbGciOiJIUzI1NiJ9.e30.x"],
    ["hex digits", "0123456789abcdef01234567"],
  ])("neither the log nor the response of a rejection has a secret of its URL, such as %s", async (_, secret) => {
    const urls = [
      `/healthz?access_token=${secret}`,
      `/v1/namespaces/main/status?token=${secret}`,
      `/nothing/${secret}`,
      `/nothing/${secret.replace("cn_", "cn%5F")}/more`,
      `/%zz/${secret}`,
      // In capitals it is no namespace.
      `/v1/namespaces/X${secret}/status`,
      `/v1/namespaces/main/runs/${secret}`,
      `/v1/namespaces/main/call-numbers/${secret}`,
      `/nothing/${"x".repeat(200)}/${secret}`,
      `http://me:${secret}@localhost/nothing`,
    ];
    for (const [index, url] of urls.entries()) {
      const { text } = await sent(bytesOf("GET", url));
      expect(rejections(), url).toHaveLength(index + 1);
      for (const shown of [log, text]) expect(shown).not.toContain(secret.slice(3, 11));
    }
  });

  test("the log of a rejection has the path without its query, and what is no secret of it", async () => {
    await sent(bytesOf("GET", "/nothing/linux-kernel-mailing-list-archive/a-b?page=2"));
    expect(rejections()).toEqual([expect.objectContaining({ path: "/nothing/linux-kernel-mailing-list-archive/a-b" })]);
  });

  test("the log of a rejection cuts name and host to the length that they may have", async () => {
    expect(await leased({ holder: { ...holder, name: "n".repeat(400), host: "h".repeat(400) } })).toBe(400);
    expect(rejections()).toMatchObject([{ holder: { name: "n".repeat(64), host: "h".repeat(253) } }]);
  });
});
