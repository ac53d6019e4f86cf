/** All routes there are, which role may use which, and where HEAD is answered: over real sockets, with an authenticator that reads a header. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { commandLine } from "@callnumber/protocol/api";
import type { FastifyInstance } from "fastify";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { EventHub } from "../src/events/events.js";
import { RecentEvents } from "../src/events/recent-events.js";
import { type Authenticator, PERMISSIONS_OF, ROLES, type Role } from "../src/http/auth.js";
import { SILENT_LOG } from "../src/log.js";
import { operations, schemas } from "./described-api.js";
import { notingStore } from "./gated-store.js";
import { openStream } from "./raw-client.js";
import { served } from "./served.js";

const authenticator: Authenticator = {
  isValid: () => true,
  authenticate: ({ headers }) => {
    const role = ROLES.find((name) => name === headers["x-role"]);
    if (role === undefined) return undefined;
    const names = headers["x-namespaces"];
    const namespaces = typeof names === "string" ? new Set(names.split(",")) : "all";
    return { tokenId: "01234567", permissions: PERMISSIONS_OF[role], namespaces };
  },
};

const startedWith = {
  store: "memory:",
  startedAtMs: 1,
  settings: [],
  commands: { storeOption: "--store 'sqlite:/it'\\''s.db'", checkpointOption: "" },
};

const ROUTES: readonly [method: string, path: string, roles: readonly Role[]][] = [
  ["POST", "/v1/namespaces/main/leases", ["lease"]],
  ["POST", "/v1/namespaces/main/numbers", ["lease"]],
  ["POST", "/v1/namespaces/main/runs/1/report", ["lease"]],
  ["GET", "/v1/namespaces/main/runs", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/runs/1", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/runs/0/1", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/call-numbers/2VznWE2i", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/status", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/capacity", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/history", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/export", ["read", "operator"]],
  ["GET", "/v1/namespaces", ["read", "operator"]],
  ["GET", "/v1/events", ["read", "operator"]],
  ["GET", "/metrics", ["read", "operator"]],
  ["GET", "/v1/settings", ["operator"]],
];

const EXAMPLES: Readonly<Record<string, string>> = { version: "0", run: "1", callNumber: "2VznWE2i" };
const PUBLIC = ["GET /healthz", "GET /openapi.json", "GET /readyz"];
/** It names the option that turns it on. */
const OFF = "GET /v1/public/namespaces/:namespace/call-numbers/:callNumber";
const CONSOLE = ["", "/", "/assets/index.css", "/assets/index.js", "/favicon.svg", "/index.html"];
/** A server, and each route that was added to it. */
async function servedWithRoutes() {
  const routes: string[] = [];
  const onApp = (message: unknown) => {
    const { fastify } = message as { readonly fastify: FastifyInstance };
    fastify.addHook("onRoute", ({ method, url }) => {
      for (const one of [method].flat()) if (one !== "HEAD") routes.push(`${one} ${url}`);
    });
  };
  subscribe("fastify.initialization", onApp);
  onTestFinished(() => void unsubscribe("fastify.initialization", onApp));
  const server = await served({ startedWith });
  // It is answered when all are loaded.
  await server.get("/healthz");
  return { ...server, routes: routes.sort() };
}

test("the routes are those of the table, those for every client and the console's files; no other changes anything", async () => {
  const { routes } = await servedWithRoutes();
  const isOfConsole = (route: string) => route.startsWith("GET /console") || route === "GET /";
  const listed = ROUTES.map(([method, path]) => `${method} ${path.replace("/main", "/:namespace")}`).map((route) =>
    route.replace("runs/0/1", "runs/:version/:run").replace("runs/1", "runs/:run").replace("2VznWE2i", ":callNumber"),
  );
  expect(routes.filter((route) => !isOfConsole(route))).toEqual([...listed, ...PUBLIC, OFF].sort());
  const files = routes.filter(isOfConsole).map((route) => route.replace(/-[\w-]{8}\./, "."));
  expect(files.sort()).toEqual(["GET /", ...CONSOLE.map((path) => `GET /console${path}`)]);
});

test("OpenAPI names the roles of each route, and does not forbid the keys of a response that later releases may add", () => {
  const listed = ROUTES.map(([method, path, roles]) => [method, path, roles.map((role) => ({ token: [role] }))]);
  const filled = (path: string) =>
    path.replace("{namespace}", "main").replace(/\{(version|run|callNumber)\}/g, (_, name) => EXAMPLES[name] as string);
  const described = operations.map(({ method, path, security }) => [method, filled(path), security]);
  expect(described.filter(([, , security]) => security?.length !== 0).sort()).toEqual(listed.sort());
  expect(schemas["LeaseRequest"]).toMatchObject({ additionalProperties: false });
  expect(schemas["Lease"]).not.toHaveProperty("additionalProperties");
});

describe("with tokens", () => {
  let url: string;
  beforeEach(async () => {
    ({ url } = await served({ namespaces: ["main", "other"], authenticator, startedWith }));
  });

  async function statusOf(method: string, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
    const response = await fetch(url + path, { method, headers });
    await response.body?.cancel();
    return response.status;
  }

  test.each(ROUTES)("%s %s is for the roles %j only", async (method, path, roles) => {
    expect(await statusOf(method, path, {})).toBe(401);
    for (const role of ROLES) {
      const status = await statusOf(method, path, { "x-role": role });
      if (roles.includes(role)) expect([401, 403], role).not.toContain(status);
      else expect(status, role).toBe(403);
    }
  });

  test.each(ROUTES)("%s %s is not for a token of another namespace", async (method, path, [role = "read"]) => {
    const isFiltered = ["/v1/namespaces", "/v1/events"].includes(path);
    expect(await statusOf(method, path, { "x-role": role, "x-namespaces": "other" })).toBe(isFiltered ? 200 : 403);
    if (path.includes("main"))
      expect(await statusOf(method, path, { "x-role": role, "x-namespaces": "main" })).not.toBe(403);
  });

  test.each([...PUBLIC.map((route) => route.replace("GET ", "")), "/console/"])(
    "%s is for every client",
    async (path) => {
      expect(await statusOf("GET", path, {})).toBe(200);
    },
  );

  const STORES_SHOWN = [
    [{ "x-role": "operator" }, "'sqlite:/it'\\''s.db'"],
    [{ "x-role": "read" }, "STORE_URL"],
    [{ "x-role": "operator", "x-namespaces": "lists" }, "STORE_URL"],
  ] as const;

  test.each(STORES_SHOWN)("a message to a client with %j names the store as %s", async (headers, store) => {
    const { message } = (await (await fetch(`${url}/v1/namespaces/lists/status`, { headers })).json()) as {
      message: string;
    };
    expect(message).toContain(`run \`callnumber init --store ${store} --namespace lists\``);
  });

  test("an event names the store to each client as a message does, to the first and to later ones", async () => {
    const events = new EventHub(SILENT_LOG);
    const recentEvents = new RecentEvents();
    events.subscribe(recentEvents.take);
    const { url } = await served({ authenticator, startedWith, events, recentEvents });
    const explanation = `run \`${commandLine("init", "lists")}\``;
    const sent = async ([headers, store]: (typeof STORES_SHOWN)[number]) => {
      const { text } = await openStream(`${url}/v1/events?recent=yes`, headers);
      const command = JSON.stringify(`callnumber init --store ${store} --namespace lists`).slice(1, -1);
      return () => expect.poll(text).toContain(`run \`${command}\``);
    };
    const before = await Promise.all(STORES_SHOWN.map(sent));
    events.warn({ namespace: "lists", explanation }, "stopped");
    const after = await Promise.all(STORES_SHOWN.map(sent));
    for (const isSent of [...before, ...after]) await isSent();
  });
});

describe("HEAD", () => {
  const ANSWERED = ["/healthz", "/readyz", "/console/"];
  let calls: string[];
  let url: string;

  beforeEach(async () => {
    calls = [];
    ({ url } = await served({ own: { store: notingStore(calls) }, publicInspect: true }));
  });

  test("HEAD is rejected where GET does work, with the right method, and reads nothing", async () => {
    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
    const described = Object.keys(paths).filter((path) => "get" in (paths[path] as object));
    const filled = described.map((path) => path.replace("{namespace}", "main").replace(/\{\w+\}/, "1"));
    const rejected = filled.filter((path) => !ANSWERED.includes(path));
    expect(rejected.length).toBeGreaterThan(13);
    calls.length = 0;
    for (const path of rejected) {
      const response = await fetch(url + path, { method: "HEAD" });
      const allow = response.headers.get("allow");
      expect([path, response.status, allow]).toEqual([path, 405, expect.stringMatching(/^GET\b/)]);
      expect(await response.text()).toBe("");
    }
    expect(calls).toEqual([]);
  });

  test.each(ANSWERED)("HEAD is answered as GET at %s, without a body", async (path) => {
    const [head, whole] = [await fetch(url + path, { method: "HEAD" }), await fetch(url + path)];
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    for (const name of ["content-type", "content-length"]) expect(head.headers.get(name)).toBe(whole.headers.get(name));
  });
});

test.each([
  ["/v1/settings", /serve --tokens-file FILE.*--listen-without-tokens and --allow-host/],
  ["/v1/public/namespaces/main/call-numbers/2VznWE2i", /serve --public-inspect/],
])("a request for %s, which is off, is answered with the option that turns it on", async (path, message) => {
  const { get, post } = await served();
  expect(await get(path)).toMatchObject({
    status: 404,
    body: { code: "not_found", message: expect.stringMatching(message) },
  });
  expect(await post(path, {})).toMatchObject({ status: 405, body: { code: "method_not_allowed" } });
});
