/** The HTTP source against real sockets that answer as a test says: what reaches the wire, and what becomes of odd answers. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createNetServer, type Server as NetServer } from "node:net";
import { gzipSync } from "node:zlib";
import type { LeaseRequest } from "@callnumber/protocol/api";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { endlessServer } from "../../../test/endless-server.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { ClientError, createClient, httpSource } from "../src/index.js";

const request: LeaseRequest = {
  runCount: 1,
  nonce: "nonce-0123456789",
  holder: { name: "x", host: "h", pid: 1, labels: {} },
  lastRun: null,
  proof: null,
  sentAtMs: 1_795_000_000_000,
};

/** So much of a lease as the source itself checks. */
const lease = { nonce: request.nonce };

interface Answer {
  readonly status: number;
  readonly body?: string | Buffer;
  readonly headers?: Record<string, string>;
}

let server: Server;
let base: string;
let answer: Answer | "hang up";
let seen: { message: IncomingMessage; body: string }[];

beforeEach(async () => {
  seen = [];
  server = createServer((message, response) => {
    let body = "";
    message.on("data", (chunk) => {
      body += chunk;
    });
    message.on("end", () => {
      seen.push({ message, body });
      if (answer === "hang up") return void message.socket.destroy();
      response
        .writeHead(answer.status, { "content-type": "application/json", ...answer.headers })
        .end(answer.body ?? "");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));

async function failure(call: Promise<unknown>): Promise<ClientError> {
  const error = await call.then(
    () => expect.fail("it did not reject"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ClientError);
  return error as ClientError;
}

/** Since Node 24 the error of a response that is not HTTP has no code, only a name. */
function platformError(code: string, message: string): Error {
  return Object.assign(new Error(message), code === "HTTPParserError" ? { name: code } : { code });
}

describe("HTTP requests", () => {
  test("a lease request is one POST with the whole request as JSON, the token, and the path of the URL", async () => {
    answer = { status: 201, body: JSON.stringify(lease) };
    const source = httpSource({ coordinator: `${base}/behind//`, token: "secret" });
    expect(await source.lease("main", request)).toEqual(lease);
    expect(seen).toHaveLength(1);
    const [{ message, body }] = seen as [(typeof seen)[0]];
    expect([message.method, message.url]).toEqual(["POST", "/behind/v1/namespaces/main/leases"]);
    expect(message.headers).toMatchObject({
      authorization: "Bearer secret",
      "content-type": "application/json",
      // Else a proxy may compress: unpacked by another thread, a response is read after a time limit that it has kept.
      "accept-encoding": "identity",
    });
    expect(JSON.parse(body)).toEqual(request);
  });

  test("a report names the run by its ledger id", async () => {
    answer = { status: 200, body: "{}" };
    await httpSource({ coordinator: base }).report("main", 2 ** 30 + 5, {
      nonce: request.nonce,
      lastSequence: 7,
      state: "open",
    });
    expect(seen[0]?.message.url).toBe(`/v1/namespaces/main/runs/${2 ** 30 + 5}/report`);
    expect(seen[0]?.message.headers["authorization"]).toBeUndefined();
  });

  test("httpSource calls the function for a token before each request, so that it can be exchanged", async () => {
    answer = { status: 201, body: JSON.stringify(lease) };
    const tokens = ["first", "second", "third"];
    const source = httpSource({ coordinator: base, token: () => tokens.shift() ?? "none" });
    expect(tokens).toHaveLength(3);
    await source.lease("main", request);
    await source.lease("main", request);
    await source.report("main", 1, { nonce: request.nonce, lastSequence: null, state: "closed" });
    expect(seen.map(({ message }) => message.headers["authorization"])).toEqual([
      "Bearer first",
      "Bearer second",
      "Bearer third",
    ]);
  });

  test.each([
    "ftp://u:S3CRET@h",
    "xhttp://S3CRET",
    "https+x://S3CRET",
    "http://u:1234/S3CRET@h",
    "http://u:S3/CRET@h",
    "http://h/?S3CRET",
    "u:S3CRET@h",
  ])("a URL that may hold a password is rejected and not shown: %s", (coordinator) => {
    const misuse = (error: unknown) =>
      error instanceof TypeError &&
      error.message.startsWith("coordinator must be an address") &&
      !/S3|CRET/.test(`${error.stack}`);
    expect(() => httpSource({ coordinator })).toThrow(expect.toSatisfy(misuse));
    expect(() => createClient({ coordinator, holder: { name: "x" } })).toThrow(expect.toSatisfy(misuse));
  });

  test.each<[unknown, string]>([
    ["localhost:7300", 'http://localhost:7300, not "localhost:7300"'],
    ["mail.example.org", 'http://mail.example.org, not "mail.example.org"'],
    ["[::1]:7300", 'http://[::1]:7300, not "[::1]:7300"'],
    [7300, "http://127.0.0.1:7300, not 7300"],
    [null, "http://127.0.0.1:7300, not null"],
    ["cn_looks-like-a-token", "http://127.0.0.1:7300"],
  ])("the coordinator %j is rejected with an address instead", (coordinator, instead) => {
    const message = `coordinator must be an address such as ${instead}`;
    const options = { coordinator } as { coordinator: string };
    expect(() => httpSource(options)).toThrow(new TypeError(message));
    if (coordinator !== null) {
      expect(() => createClient({ ...options, holder: { name: "x" } })).toThrow(new TypeError(message));
    }
  });

  test("the client reads CALLNUMBER_COORDINATOR when there is not an option for the coordinator", async () => {
    answer = { status: 404, body: '{"code":"namespace_not_found","message":"none"}' };
    onTestFinished(() => void vi.unstubAllEnvs());
    vi.stubEnv("CALLNUMBER_COORDINATOR", base);
    await using client = createClient({ holder: { name: "x" } });
    await expect(client.next()).rejects.toMatchObject({ code: "namespace_not_found" });
    expect(seen).toHaveLength(1);
    await using other = createClient({ coordinator: `${base}/other`, holder: { name: "x" } });
    await expect(other.next()).rejects.toMatchObject({ code: "namespace_not_found" });
    expect(seen[1]?.message.url).toMatch(/^\/other\//);
    vi.stubEnv("CALLNUMBER_COORDINATOR", "localhost:7300");
    const message = 'CALLNUMBER_COORDINATOR must be an address such as http://localhost:7300, not "localhost:7300"';
    expect(() => createClient({ holder: { name: "x" } })).toThrow(new TypeError(message));
    const source = { lease: vi.fn(), report: vi.fn() };
    await createClient({ source, holder: { name: "x" } }).close();
  });

  test("a URL with a path that the coordinator does not know is shown with the remedy", async () => {
    answer = { status: 404, body: '{"code":"not_found","message":"there is not a route POST /main/v1/…"}' };
    const error = await failure(httpSource({ coordinator: `${base}/main/` }).lease("main", request));
    expect(error.code).toBe("not_found");
    expect(error.message).toBe("there is not a route POST /main/v1/…. Leave /main out of the coordinator's URL");
    const plain = await failure(httpSource({ coordinator: base }).lease("main", request));
    expect(plain.message).toBe("there is not a route POST /main/v1/…");
  });

  const SECRET = "cn_not-to-be-shown";
  const BAD_TOKENS = [`${SECRET}\r\nx: y`, `${SECRET} x`, `Bearer ${SECRET}`, `${SECRET}ü`, `"${SECRET}"`, "", "="];

  test.each([...BAD_TOKENS, null, 7, {}])("an invalid token is rejected and not shown: %j", async (given) => {
    const token = given as string;
    const misuse = (error: unknown) => {
      expect(error).toBeInstanceOf(TypeError);
      expect((error as TypeError).message).toMatch(/^token must have .* no white space inside/);
      expect((error as TypeError).stack).not.toContain(SECRET);
      return true;
    };
    expect(() => httpSource({ coordinator: base, token })).toThrow(expect.toSatisfy(misuse));
    expect(() => createClient({ coordinator: base, holder: { name: "x" }, token })).toThrow(expect.toSatisfy(misuse));
    const later = httpSource({ coordinator: base, token: () => token });
    await expect(later.lease("main", request)).rejects.toEqual(expect.toSatisfy(misuse));
    await using client = createClient({ coordinator: base, holder: { name: "x" }, token: () => token });
    const failure = await client.next().catch((error: unknown) => error as Error);
    expect(failure).toMatchObject({ name: "ClientError", message: expect.stringMatching(/^token must have/) });
    expect(seen).toEqual([]);
  });

  test("a token may be a promise of a function; one that rejects fails the call and is handled", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    onTestFinished(() => void process.off("unhandledRejection", unhandled));
    answer = { status: 404, body: '{"code":"namespace_not_found","message":"none"}' };
    await using client = createClient({ coordinator: base, holder: { name: "x" }, token: async () => "exchanged" });
    await expect(client.next()).rejects.toMatchObject({ code: "namespace_not_found" });
    expect(seen[0]?.message.headers["authorization"]).toBe("Bearer exchanged");

    const reason = new Error("the vault is sealed");
    const token = () => Promise.reject(reason);
    await using failing = createClient({ coordinator: base, holder: { name: "x" }, token });
    await expect(failing.next()).rejects.toMatchObject({ name: "ClientError", message: reason.message, cause: reason });
    // In the background, without a caller: a lease, and a report.
    expect(() => failing.nextSync()).toThrow(ClientError);
    const report = { nonce: request.nonce, lastSequence: null, state: "closed" } as const;
    await expect(httpSource({ coordinator: base, token }).report("main", 1, report)).rejects.toBe(reason);
    // One that rejects after the time limit of its request, too.
    const late = async () => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      throw reason;
    };
    const impatient = createClient({ coordinator: base, holder: { name: "x" }, token: late, requestTimeoutMs: 5 });
    expect(() => impatient.nextSync()).toThrow(ClientError);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await impatient.close();
    expect(unhandled).not.toHaveBeenCalled();
    expect(seen).toHaveLength(1);
  });

  test("httpSource removes the white space around a token, such as the line end of a file", async () => {
    answer = { status: 201, body: JSON.stringify(lease) };
    const token = "\t cn_secret \r\n";
    for (const given of [token, () => token]) {
      await httpSource({ coordinator: base, token: given }).lease("main", request);
      expect(seen.pop()?.message.headers["authorization"]).toBe("Bearer cn_secret");
    }
  });

  test("httpSource sends no lease request twice when the connection is lost", async () => {
    answer = "hang up";
    expect(await failure(httpSource({ coordinator: base }).lease("main", request))).toMatchObject({
      code: "coordinator_unreachable",
    });
    expect(seen).toHaveLength(1);
  });

  test("httpSource passes the caller's signal to fetch", async () => {
    const { signal } = new AbortController();
    const signals: unknown[] = [];
    const fetch = async (_: string, init: RequestInit) => {
      signals.push(init.signal);
      return Response.json(lease, { status: 201 });
    };
    const source = httpSource({ coordinator: "https://example.org", fetch });
    await source.lease("main", request, { signal });
    await source.lease("main", request);
    expect(signals).toEqual([signal, null]);
  });

  test("a response may come in pieces that cut a character", async () => {
    const bytes = new TextEncoder().encode(JSON.stringify({ ...lease, namespace: "ü" }));
    const body = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const fetch = async () => new Response(body, { status: 201 });
    const read = await httpSource({ coordinator: "https://example.org", fetch }).lease("main", request);
    expect(read.namespace).toBe("ü");
  });

  test("httpSource rejects a response to a report that is no coordinator's", async () => {
    const report = { nonce: request.nonce, lastSequence: null, state: "closed" } as const;
    answer = { status: 200, body: "<html>" };
    const error = await failure(httpSource({ coordinator: base }).report("main", 1, report) as Promise<never>);
    expect(error).toMatchObject({
      code: "invalid_response",
      message: expect.stringContaining("not as a coordinator does"),
    });
  });
});

describe("rejections", () => {
  test("a rejection keeps the coordinator's code, message and delay", async () => {
    answer = {
      status: 503,
      body: '{"code":"shutting_down","message":"stopping","retryAfterMs":250}',
      headers: { "retry-after": "1" },
    };
    expect(await failure(httpSource({ coordinator: base }).lease("main", request))).toMatchObject({
      code: "shutting_down",
      message: "stopping",
      retryAfterMs: 250,
    });
  });

  const shuttingDownFor = (retryAfterMs: string) =>
    `{"code":"shutting_down","message":"x","retryAfterMs":${retryAfterMs}}`;

  test("a rejection of a newer coordinator keeps its message", async () => {
    answer = { status: 400, body: '{"code":"of_the_future","message":"the words"}' };
    const { message } = await failure(httpSource({ coordinator: base }).lease("main", request));
    expect(message).toContain("status 400, of_the_future: the words. Check");
    answer = { status: 400, body: '{"code":7,"message":"the words"}' };
    const malformed = await failure(httpSource({ coordinator: base }).lease("main", request));
    expect(malformed.message).toContain("status 400, not as a coordinator does. Check");
  });

  test.each<[Answer, string, number | undefined]>([
    [{ status: 502, body: "<html>Bad Gateway</html>" }, "coordinator_unreachable", undefined],
    [{ status: 429, body: "{}", headers: { "retry-after": "12" } }, "coordinator_unreachable", 12_000],
    [{ status: 503, body: '{"code":"of_the_future","message":"x"}' }, "coordinator_unreachable", undefined],
    [{ status: 503, body: '{"code":7,"message":"x"}' }, "coordinator_unreachable", undefined],
    [{ status: 503, body: '{"code":"shutting_down","message":7}' }, "coordinator_unreachable", undefined],
    [{ status: 503, body: shuttingDownFor('"5"') }, "coordinator_unreachable", undefined],
    [{ status: 503, body: shuttingDownFor("-1") }, "coordinator_unreachable", undefined],
    [{ status: 503, body: shuttingDownFor("0"), headers: { "retry-after": "2" } }, "shutting_down", 0],
    [{ status: 503, body: "{}", headers: { "retry-after": "2 s" } }, "coordinator_unreachable", undefined],
    [{ status: 503, body: "{}", headers: { "retry-after": "1234567" } }, "coordinator_unreachable", undefined],
    [{ status: 204 }, "invalid_response", undefined],
    [{ status: 408, body: "{}" }, "coordinator_unreachable", undefined],
    [{ status: 500, body: "<html>broken</html>" }, "invalid_response", undefined],
    [{ status: 501, body: "<html>not here</html>" }, "invalid_response", undefined],
    [{ status: 503, body: '{"code":"shutting_down","message":"x","reason":7}' }, "coordinator_unreachable", undefined],
    [{ status: 404, body: "<html>not here</html>" }, "invalid_response", undefined],
    [{ status: 200, body: "hello" }, "invalid_response", undefined],
    [{ status: 400, body: '{"code":"of_the_future","message":"x"}' }, "invalid_response", undefined],
    [{ status: 201, body: '{"id":7}' }, "invalid_response", undefined],
    [{ status: 302, headers: { location: "/elsewhere" } }, "invalid_response", undefined],
  ])("the response %j becomes %s", async (given, code, retryAfterMs) => {
    answer = given;
    expect(await failure(httpSource({ coordinator: base }).lease("main", request))).toMatchObject({
      code,
      retryAfterMs,
    });
    expect(seen).toHaveLength(1);
  });

  describe("a response that is too long", () => {
    const LONGEST_BYTES = 65_536;
    /** What the kernels of both sides may keep for a client that reads no more. */
    const ON_THE_WAY_BYTES = 24 * 1024 * 1024;
    const text = JSON.stringify(lease);

    test("a response is rejected above 65,536 bytes, compressed or not, whatever it begins with", async () => {
      const source = httpSource({ coordinator: base });
      for (const pack of [Buffer.from, gzipSync] as const) {
        const headers = pack === gzipSync ? { "content-encoding": "gzip" } : {};
        answer = { status: 201, body: pack(text.padEnd(LONGEST_BYTES)), headers };
        expect(await source.lease("main", request)).toEqual(lease);
        answer = { status: 201, body: pack(text.padEnd(LONGEST_BYTES + 1)), headers };
        expect(await failure(source.lease("main", request))).toMatchObject({
          code: "invalid_response",
          message: expect.stringContaining("longer than a coordinator does"),
        });
      }
    });

    test("the client disconnects within an endless response, rejects at once, and does not retry", async () => {
      const { url, heard } = await endlessServer({ status: 201 });
      await using client = createClient({ coordinator: url, holder: { name: "x" } });
      await expect(client.next()).rejects.toMatchObject({ code: "invalid_response" });
      expect(await heard).toBeLessThan(ON_THE_WAY_BYTES);
    });
  });

  test.each([
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "certificate_rejected", "unknown authority"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "certificate_rejected", "unknown authority"],
    ["CERT_HAS_EXPIRED", "certificate_rejected", "has expired"],
    ["CERT_NOT_YET_VALID", "certificate_rejected", "is not valid"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate_rejected", "another host name"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "invalid_response", "does not speak TLS"],
    ["HPE_INVALID_CONSTANT", "invalid_response", "does not speak HTTP"],
    ["HTTPParserError", "invalid_response", "does not speak HTTP"],
    ["ECONNRESET", "coordinator_unreachable", "(what the platform says)"],
    ["NO_CERT_AT_ALL", "coordinator_unreachable", "(what the platform says)"],
  ])("the platform's error %s becomes %s", async (platformCode, code, words) => {
    const asked: unknown[] = [];
    const cause = platformError(platformCode, "what the platform says");
    const fetch = async (url: string, { method }: RequestInit) => {
      asked.push([method, url]);
      throw new TypeError("fetch failed", { cause });
    };
    const error = await failure(httpSource({ coordinator: "https://example.org", fetch }).lease("main", request));
    expect(error).toMatchObject({ code, message: expect.stringContaining(words), cause: { cause } });
    expect(error.message.includes("can't be used")).toBe(code !== "coordinator_unreachable");
    // A server that was asked by https: is not asked whether it expects TLS.
    expect(asked).toEqual([["POST", "https://example.org/v1/namespaces/main/leases"]]);
  });

  const answered = async () => new Response();
  const failed = (code: string) => () => Promise.reject(platformError(code, code));
  test.each<[string, () => Promise<Response>, string]>([
    ["ECONNRESET", answered, "it speaks TLS"],
    ["HPE_INVALID_CONSTANT", failed("CERT_HAS_EXPIRED"), "it speaks TLS"],
    ["HTTPParserError", answered, "it speaks TLS"],
    ["UND_ERR_SOCKET", failed("ECONNREFUSED"), "(UND_ERR_SOCKET)"],
    ["ECONNREFUSED", answered, "(ECONNREFUSED)"],
    ["NO_ECONNRESET", answered, "(NO_ECONNRESET)"],
  ])(
    "after %s by http, httpSource asks the same server whether it expects TLS, where it may",
    async (code, probe, words) => {
      const asked: unknown[] = [];
      const fetch = (url: string, { method }: RequestInit) => {
        asked.push([method, url]);
        return method === "HEAD" ? probe() : failed(code)();
      };
      const { message } = await failure(httpSource({ coordinator: "http://h:1/p", fetch }).lease("main", request));
      expect(message).toContain(words);
      const mayExpectTls = /^(ECONNRESET|HPE|HTTPParserError|UND)/.test(code);
      expect(asked.slice(1)).toEqual(mayExpectTls ? [["HEAD", "https://h:1/p"]] : []);
    },
  );

  test("an error without a cause or a message is described by what it has", async () => {
    const said = async (thrown: unknown) => {
      const fetch = () => Promise.reject(thrown);
      return (await failure(httpSource({ coordinator: "https://example.org", fetch }).lease("main", request))).message;
    };
    expect(await said(new Error("no network"))).toContain("(no network)");
    expect(await said(Object.assign(new Error(""), { code: "EPIPE" }))).toContain("(EPIPE)");
    expect(await said(new Error(""))).toContain("(Error)");
    expect(await said("a text")).toContain("(a text)");
    expect(await said(undefined)).toContain("(undefined)");
  });

  test("the error for an unreachable coordinator has its URL and the remedy", async () => {
    await new Promise((resolve) => server.close(resolve));
    const { code, message } = await failure(httpSource({ coordinator: base }).lease("main", request));
    expect(code).toBe("coordinator_unreachable");
    expect(message).toContain(base);
    expect(message).toContain("ECONNREFUSED");
    expect(message).toContain("callnumber serve");
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
});

describe("a URL of no coordinator", () => {
  const authority = newAuthority();

  /** A server of this test, on a port of its own. */
  async function listening(other: NetServer): Promise<string> {
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void other.close());
    return `127.0.0.1:${(other.address() as AddressInfo).port}`;
  }
  const withTls = ({ certificate, key } = authority.issue()) =>
    listening(createTlsServer({ cert: certificate, key }, (_, response) => response.end()));
  const plain = (given: Answer) =>
    listening(createServer((_, response) => response.writeHead(given.status, given.headers).end(given.body)));
  const greeting = () => listening(createNetServer((socket) => void socket.on("error", () => {}).end("SSH-2.0-x\r\n")));

  test.each<[string, () => Promise<string>, string, RegExp]>([
    [
      "an untrusted certificate",
      async () => `https://${await withTls()}`,
      "certificate_rejected",
      /NODE_EXTRA_CA_CERTS/,
    ],
    ["HTTP where TLS is", async () => `http://${await withTls()}`, "invalid_response", /Use https:/],
    ["TLS where HTTP is", async () => `https://${await plain({ status: 200 })}`, "invalid_response", /Use http:/],
    ["a server of another protocol", async () => `http://${await greeting()}`, "invalid_response", /not speak HTTP/],
    [
      "a page",
      async () => `http://${await plain({ status: 200, body: "<html>" })}`,
      "invalid_response",
      /status 200.* Check that it is the URL of a coordinator/,
    ],
    [
      "a redirect",
      async () => `http://${await plain({ status: 308, headers: { location: base } })}`,
      "invalid_response",
      /status 308.* Check that it is the URL of a coordinator/,
    ],
  ])("next() reports %s at once, without a retry", async (_, server, code, remedy) => {
    const coordinator = await server();
    const onRetry = vi.fn();
    await using client = createClient({ coordinator, holder: { name: "x" }, hooks: { onRetry } });
    const error = await failure(client.next());
    expect(error).toMatchObject({ code, message: expect.stringMatching(remedy) });
    expect(error.message).toContain(coordinator);
    expect(error.message.length).toBeLessThanOrEqual(200);
    expect(onRetry).not.toHaveBeenCalled();
    expect(seen).toEqual([]);
  });
});
