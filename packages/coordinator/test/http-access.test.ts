/** Which role may use which route, and where HEAD is answered: over real sockets, with an authenticator that reads a header. */
import { beforeEach, describe, expect, test } from "vitest";
import { type Authenticator, PERMISSIONS_OF, ROLES, type Role } from "../src/http/auth.js";
import { notingStore } from "./gated-store.js";
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
  ["POST", "/v1/namespaces/main/runs/1/report", ["lease"]],
  ["GET", "/v1/namespaces/main/runs", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/runs/1", ["read", "operator"]],
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

  test.each(["/healthz", "/readyz", "/openapi.json", "/console/"])("%s is for every client", async (path) => {
    expect(await statusOf("GET", path, {})).toBe(200);
  });

  test.each([
    [{ "x-role": "operator" }, "'sqlite:/it'\\''s.db'"],
    [{ "x-role": "read" }, "STORE_URL"],
    [{ "x-role": "operator", "x-namespaces": "lists" }, "STORE_URL"],
  ])("a message to a client with %j names the store as %s", async (headers, store) => {
    const { message } = (await (await fetch(`${url}/v1/namespaces/lists/status`, { headers })).json()) as {
      message: string;
    };
    expect(message).toContain(`run \`callnumber init --store ${store} --namespace lists\``);
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

  test("is rejected where GET does work, with the right method, and reads nothing", async () => {
    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
    const described = Object.keys(paths).filter((path) => "get" in (paths[path] as object));
    const filled = described.map((path) => path.replace("{namespace}", "main").replace(/\{\w+\}/, "1"));
    const rejected = [...filled, "/metrics", "/openapi.json"].filter((path) => !ANSWERED.includes(path));
    expect(rejected.length).toBeGreaterThan(11);
    calls.length = 0;
    for (const path of rejected) {
      const response = await fetch(url + path, { method: "HEAD" });
      const allow = response.headers.get("allow");
      expect([path, response.status, allow]).toEqual([path, 405, expect.stringMatching(/^GET\b/)]);
      expect(await response.text()).toBe("");
    }
    expect(calls).toEqual([]);
  });

  test.each(ANSWERED)("is answered as GET at %s, without a body", async (path) => {
    const [head, whole] = [await fetch(url + path, { method: "HEAD" }), await fetch(url + path)];
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    for (const name of ["content-type", "content-length"]) expect(head.headers.get(name)).toBe(whole.headers.get(name));
  });
});
