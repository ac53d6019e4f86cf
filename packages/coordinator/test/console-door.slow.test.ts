/** The console's own door, over real sockets: who is signed in by a cookie, what that is good for, and for whose pages. */
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from "node:http";
import type { FastifyInstance } from "fastify";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { RecentEvents } from "../src/events/recent-events.js";
import { OPEN_DOOR } from "../src/http/access.js";
import { createServer, type Server } from "../src/http/server.js";
import { FAILURES } from "../src/http/session-routes.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { TokensInHand } from "./tokens-in-hand.js";

/** Each route that any server of this file was given. */
const routes = vi.hoisted(() => new Set<string>());

vi.mock("../src/http/app.js", async (original) => {
  const real = await original<typeof import("../src/http/app.js")>();
  const newApp = (...parameters: Parameters<typeof real.newApp>) => {
    const app = real.newApp(...parameters);
    (app as unknown as FastifyInstance).addHook("onRoute", ({ method, url, config, schema }) => {
      const isRefusal = [method].flat().includes("DELETE") && (schema as { hide?: boolean }).hide === true;
      if (!isRefusal) for (const one of [method].flat()) routes.add(`${one} ${url} ${config?.access}`);
    });
    return app;
  };
  return { ...real, newApp };
});

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Question {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: unknown;
}

async function served({ isOpen = false } = {}) {
  const tokens = new TokensInHand();
  tokens.add("reader", "read");
  tokens.add("operator", "operator");
  tokens.add("importer", "lease");
  tokens.add("other's", "read", ["other"]);
  const told: string[] = [];
  const events = new EventHub(SILENT_LOG);
  events.subscribe(({ event, fields }) => told.push(`${event} ${JSON.stringify(fields)}`));
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
  for (const namespace of ["main", "other"]) await coordinator.initNamespace(namespace);
  const doors = isOpen ? { door: OPEN_DOOR } : { door: tokens, signInTokens: tokens };
  const recentEvents = new RecentEvents();
  events.subscribe(recentEvents.take);
  const startedWith = {
    store: "memory:",
    startedAtMs: 1,
    settings: [],
    commands: { storeOption: "--store memory:", witnessOption: "" },
  };
  const server = await createServer({ coordinator, release: "0.0.0", events, recentEvents, startedWith, ...doors });
  servers.push(server);
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const ask = (path: string, { method = "GET", headers = {}, body }: Question = {}) =>
    new Promise<Answered>((resolve, reject) => {
      const asked = request(`${url}${path}`, { method, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
          // A stream has no end of its own.
          if (path.startsWith("/v1/events")) answer.destroy();
        });
        answer.on("close", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text }));
      });
      asked.on("error", reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const ofPage = { origin: url, "sec-fetch-site": "same-origin", "content-type": "application/json" };
  const signIn = (token: string, headers: OutgoingHttpHeaders = {}) =>
    ask("/console/session", { method: "POST", headers: { ...ofPage, ...headers }, body: { token } });
  const cookieOf = async (token: string) => cookieIn(await signIn(token));
  return { url, ask, signIn, cookieOf, ofPage, tokens, told };
}

function cookieIn({ headers }: Answered): string {
  return headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
}

const OWN = { "sec-fetch-site": "same-origin" };
const RUNS = "/v1/namespaces/main/runs";

describe("signing in", () => {
  test("gives a cookie that no script reads and no other site's page sends", async () => {
    const { url, signIn } = await served();
    const { status, headers, body } = await signIn("reader");
    expect(status).toBe(201);
    const port = new URL(url).port;
    expect(headers["set-cookie"]).toEqual([
      expect.stringMatching(
        new RegExp(`^callnumber-session-${port}=[\\w-]{43}; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict$`),
      ),
    ]);
    expect(headers["cache-control"]).toBe("no-store");
    expect(JSON.parse(body)).toEqual({
      isNeeded: true,
      session: { tokenId: "00000000", namespaces: "all", endsInMs: 28_800_000 },
      commands: null,
    });
  });

  test("on a page that came by TLS gives a cookie that never goes without, by a name that nobody else can set", async () => {
    const { url, signIn } = await served();
    const { headers } = await signIn("reader", { origin: url.replace("http:", "https:") });
    const port = new URL(url).port;
    expect(headers["set-cookie"]?.[0]).toMatch(
      new RegExp(`^__Host-callnumber-session-${port}=[^;]+; Path=/;.*; Secure$`),
    );
  });

  test("answers every wrong token alike, and tells an importer's what it is for", async () => {
    const { signIn, tokens } = await served();
    tokens.revoke("operator");
    const wrong = ["operator", "", " ", "reader ", "x".repeat(3_000), "Reader", "__proto__", "\u0000"];
    const answers = [];
    for (const token of wrong) answers.push(await signIn(token));
    expect(new Set(answers.map(({ status, body }) => `${status} ${body}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(401);
    for (const { headers } of answers) expect(headers["set-cookie"]).toBeUndefined();
    const importer = await signIn("importer");
    expect([importer.status, importer.headers["set-cookie"]]).toEqual([403, undefined]);
    expect(importer.body).toContain("for importers");
  });

  test.each<[string, OutgoingHttpHeaders]>([
    ["another site", { origin: "http://evil.example", "sec-fetch-site": "cross-site" }],
    ["another port of this host", { origin: "http://127.0.0.1:1", "sec-fetch-site": "same-site" }],
    ["nobody knows where", { origin: "null", "sec-fetch-site": "cross-site" }],
    ["an old browser at another site", { origin: "http://evil.example", "sec-fetch-site": undefined }],
    ["an old browser at another port", { origin: "http://127.0.0.1:1", "sec-fetch-site": undefined }],
    ["a page without a name", { origin: "null", "sec-fetch-site": undefined }],
    ["no page", { origin: undefined, "sec-fetch-site": undefined }],
    ["a typed address", { origin: undefined, "sec-fetch-site": "none" }],
    [
      "a name that leads here by a trick",
      { origin: "http://evil.example", host: "127.0.0.1", "sec-fetch-site": undefined },
    ],
    ["an origin that is none", { origin: "http://", "sec-fetch-site": undefined }],
  ])("and out is refused to %s", async (_, headers) => {
    const { ask, signIn, cookieOf, ofPage } = await served();
    const cookie = await cookieOf("reader");
    const given = Object.fromEntries(
      Object.entries({ ...ofPage, ...headers }).filter(([, value]) => value !== undefined),
    );
    const answers = [
      await ask("/console/session", { method: "POST", headers: given as never, body: { token: "reader" } }),
      await ask("/console/session/end", { method: "POST", headers: { ...given, cookie } as never, body: {} }),
    ];
    for (const answer of answers) expect([answer.status, answer.headers["set-cookie"]]).toEqual([403, undefined]);
    expect((await ask(RUNS, { headers: { ...OWN, cookie } })).status).toBe(200);
    // By an old browser's own page it goes.
    expect((await signIn("reader", {})).status).toBe(201);
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8", ""])(
    "takes no other content type than its own: %j",
    async (type) => {
      const { signIn } = await served();
      expect((await signIn("reader", { "content-type": type })).status).toBe(415);
    },
  );

  test.each([
    [{}],
    [{ token: 1 }],
    [{ token: null }],
    [{ token: ["reader"] }],
    [{ token: "reader", role: "operator" }],
    [["reader"]],
    ["reader"],
    [null],
  ])("takes nothing but a token: %j", async (body) => {
    const { ask, ofPage } = await served();
    const answer = await ask("/console/session", { method: "POST", headers: ofPage, body });
    expect([answer.status, answer.headers["set-cookie"]]).toEqual([400, undefined]);
  });

  test("may fail so many times; a good token is good all the same", async () => {
    const { signIn } = await served();
    const answers = [];
    for (let count = 0; count < FAILURES.atOnce; count++) answers.push(await signIn("wrong"));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    const { status, headers } = await signIn("wrong");
    expect([status, headers["set-cookie"]]).toEqual([429, undefined]);
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    expect((await signIn("importer")).status).toBe(403);
    expect((await signIn("reader")).status).toBe(201);
  });

  test("is told to the log with the token's id, and never with token or cookie", async () => {
    const { ask, signIn, cookieOf, ofPage, told } = await served();
    const cookie = await cookieOf("reader");
    await signIn("a-wrong-token");
    await ask("/console/session/end", { method: "POST", headers: { ...ofPage, cookie }, body: {} });
    expect(told).toEqual([
      'sign_in {"tokenId":"00000000"}',
      expect.stringContaining('refusal {"code":"unauthorized"'),
      'sign_out {"tokenId":"00000000"}',
    ]);
    const text = told.join("\n");
    for (const secret of ["a-wrong-token", "reader", cookie.split("=")[1] as string])
      expect(text).not.toContain(secret);
  });

  test("again ends the session before, and out ends it at once, for every page", async () => {
    const { ask, signIn, cookieOf, ofPage } = await served();
    const first = await cookieOf("reader");
    const second = cookieIn(await signIn("operator", { cookie: first }));
    const statusOf = async (cookie: string) => (await ask(RUNS, { headers: { ...OWN, cookie } })).status;
    expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);
    const out = await ask("/console/session/end", { method: "POST", headers: { ...ofPage, cookie: second }, body: {} });
    expect(out.status).toBe(200);
    expect(out.headers["set-cookie"]?.[0]).toMatch(/=; Path=\/; Max-Age=0; /);
    expect(await statusOf(second)).toBe(401);
  });
});

const READ = [RUNS, "/v1/namespaces", "/v1/events", "/metrics", "/v1/namespaces/main/export"];

describe("a cookie", () => {
  test("is good for looking, and for nothing that takes or changes, whatever the token may", async () => {
    const { ask, cookieOf, ofPage } = await served();
    const cookie = await cookieOf("operator");
    for (const path of READ) expect((await ask(path, { headers: { ...OWN, cookie } })).status, path).toBe(200);
    for (const [path, body] of [
      ["/v1/namespaces/main/leases", {}],
      ["/v1/namespaces/main/runs/1/report", {}],
      ["/v1/namespaces/main/labels", { labels: { a: "b" } }],
    ] as const) {
      const answer = await ask(path, { method: "POST", headers: { ...ofPage, cookie }, body });
      expect(answer.status, path).toBe(403);
    }
    const described = await ask("/v1/namespaces", { headers: { ...OWN, cookie } });
    expect(described.body).not.toContain('"a":"b"');
  });

  test("reaches as far as its token", async () => {
    const { ask, cookieOf } = await served();
    const cookie = await cookieOf("other's");
    expect((await ask(RUNS, { headers: { ...OWN, cookie } })).status).toBe(403);
    expect((await ask("/v1/namespaces/other/runs", { headers: { ...OWN, cookie } })).status).toBe(200);
    const { session } = JSON.parse((await ask("/console/session", { headers: { ...OWN, cookie } })).body);
    expect(session.namespaces).toEqual(["other"]);
  });

  test.each<[string, boolean, OutgoingHttpHeaders]>([
    ["a page of its own", true, OWN],
    ["a typed address", true, { "sec-fetch-site": "none" }],
    ["another site", false, { "sec-fetch-site": "cross-site" }],
    ["another port of this host", false, { "sec-fetch-site": "same-site" }],
    ["another port that says who it is", false, { "sec-fetch-site": "same-site", referer: "OWN/console/" }],
    ["a word that is none", false, { "sec-fetch-site": "same-origin, cross-site" }],
    ["nothing", false, { "sec-fetch-site": "" }],
    ["an old browser's own page", true, { referer: "OWN/console/" }],
    ["an old browser that tells nothing", false, {}],
    ["an old browser at another site", false, { referer: "http://evil.example/" }],
    ["an old browser at another port", false, { referer: "http://127.0.0.1:1/" }],
    ["an old browser at the other scheme", false, { referer: "TLS/console/" }],
    ["an origin of another, whatever the rest says", false, { origin: "http://evil.example", referer: "OWN/console/" }],
    ["an address that only begins alike", false, { referer: "OWN.evil.example/" }],
    ["an address with our name as its user", false, { referer: "USER@evil.example/" }],
  ])("sent by %s: %s", async (_, isGood, headers) => {
    const { url, ask, cookieOf } = await served();
    const cookie = await cookieOf("reader");
    const filled = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        String(value)
          .replace("OWN", url)
          .replace("TLS", url.replace("http:", "https:"))
          .replace("USER", `${url.replace(/:\d+$/, "")}:80`),
      ]),
    );
    for (const path of READ) {
      const { status, body } = await ask(path, { headers: { ...filled, cookie } });
      expect(isGood ? [200] : [401, 403], path).toContain(status);
      if (!isGood) expect(body).not.toContain("main");
    }
    const { session } = JSON.parse((await ask("/console/session", { headers: { ...filled, cookie } })).body);
    expect((session ?? null) !== null).toBe(isGood);
  });

  test("counts for nothing beside a header that names a token, right or wrong", async () => {
    const { ask, cookieOf } = await served();
    const cookie = await cookieOf("reader");
    const statusOf = async (authorization: string) =>
      (await ask(RUNS, { headers: { ...OWN, cookie, authorization } })).status;
    expect(await statusOf("Bearer wrong")).toBe(401);
    expect(await statusOf("Basic cmVhZGVyOg==")).toBe(401);
    expect(await statusOf("")).toBe(401);
    expect(await statusOf("Bearer importer")).toBe(403);
    expect(await statusOf("Bearer operator")).toBe(200);
  });

  test("of one's own is found among others of the same name, and no other is good", async () => {
    const { ask, cookieOf } = await served();
    const cookie = await cookieOf("reader");
    const [name, secret] = cookie.split("=") as [string, string];
    const statusOf = async (text: string) => (await ask(RUNS, { headers: { ...OWN, cookie: text } })).status;
    expect(await statusOf(`a=b; ${name}=planted; ${cookie}`)).toBe(200);
    for (const text of [
      "",
      "=",
      name,
      `${name}=`,
      `${name}=${"A".repeat(43)}`,
      `${name}x=${secret}`,
      `callnumber-session-1=${secret}`,
      `${name}="${secret}"`,
      `__Host-${name}=${secret}=`,
    ])
      expect([text, await statusOf(text)]).toEqual([text, 401]);
  });

  test("keeps an event stream open as long as somebody is signed in, and no longer", async () => {
    const { url, ask, signIn, cookieOf, ofPage } = await served();
    const cookie = await cookieOf("reader");
    const stream = await fetch(`${url}/v1/events`, { headers: { ...OWN, cookie } });
    const reader = (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toContain("retry:");
    await signIn("operator");
    expect((await reader.read()).value).toContain("sign_in");
    await ask("/console/session/end", { method: "POST", headers: { ...ofPage, cookie }, body: {} });
    // Cut off: it ends, or breaks.
    await expect(
      reader.read().then(
        ({ done }) => done,
        () => true,
      ),
    ).resolves.toBe(true);
  });

  test("is no good once its token is revoked", async () => {
    const { ask, cookieOf, tokens } = await served();
    const cookie = await cookieOf("reader");
    tokens.revoke("reader");
    expect((await ask(RUNS, { headers: { ...OWN, cookie } })).status).toBe(401);
  });
});

test("every answer says that it is for pages of its own, and the page's own that it is for nobody's frame, form or script", async () => {
  const { ask, cookieOf } = await served();
  const cookie = await cookieOf("reader");
  for (const path of [...READ, "/console/", "/console/session", "/healthz", "/nowhere", "/openapi.json"]) {
    const { headers } = await ask(path, { headers: { ...OWN, cookie } });
    expect([path, headers["x-content-type-options"], headers["cross-origin-resource-policy"]]).toEqual([
      path,
      "nosniff",
      "same-origin",
    ]);
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  }
  const { headers } = await ask("/console/", { headers: { "sec-fetch-site": "none" } });
  const policy = String(headers["content-security-policy"]).split("; ");
  expect(policy).toEqual(
    expect.arrayContaining(["default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "script-src 'self'"]),
  );
  expect(policy.join()).not.toMatch(/unsafe|data:|https?:|\*/);
  expect(headers["cross-origin-opener-policy"]).toBe("same-origin");
});

test("where nobody is asked for a token there is nothing to sign in to, and the page is told so", async () => {
  const { ask, signIn } = await served({ isOpen: true });
  expect(JSON.parse((await ask("/console/session")).body)).toEqual({
    isNeeded: false,
    session: null,
    commands: { storeOption: "--store memory:", witnessOption: "" },
  });
  expect([403, 405]).toContain((await signIn("reader")).status);
  expect((await ask(RUNS)).status).toBe(200);
});

test("the routes are these: no verb of the guard is among them, and what changes anything is asked for by POST", async () => {
  await served();
  const changing = [...routes].filter((route) => !/^(GET|HEAD) /.test(route)).sort();
  expect(changing).toEqual([
    "POST /console/session public",
    "POST /console/session/end public",
    "POST /v1/namespaces/:namespace/labels change",
    "POST /v1/namespaces/:namespace/leases lease",
    "POST /v1/namespaces/:namespace/runs/:run/report lease",
  ]);
  const looking = [...routes].filter((route) => route.startsWith("GET ") && !route.startsWith("GET /console/")).sort();
  expect(looking).toEqual([
    "GET /console public",
    "GET /healthz public",
    "GET /metrics read",
    "GET /openapi.json public",
    "GET /readyz public",
    "GET /v1/events read",
    "GET /v1/namespaces read",
    "GET /v1/namespaces/:namespace/call-numbers/:callNumber read",
    "GET /v1/namespaces/:namespace/capacity read",
    "GET /v1/namespaces/:namespace/export read",
    "GET /v1/namespaces/:namespace/history read",
    "GET /v1/namespaces/:namespace/runs read",
    "GET /v1/namespaces/:namespace/runs/:run read",
    "GET /v1/namespaces/:namespace/status read",
    "GET /v1/settings settings",
  ]);
  const verbs = /\b(init|seal|recover|advance|move|adopt|rotate|cut|create|delete|revoke|accept|backup)\b/;
  expect([...routes].filter((route) => verbs.test(route))).toEqual([]);
  expect([...routes].filter((route) => / \/console\/(?!session)/.test(route) && !route.endsWith(" public"))).toEqual(
    [],
  );
});
