/** Who may ask at which route: over real sockets, with an authenticator that reads a header. */
import { afterEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { type Authenticator, PERMISSIONS_OF, ROLES, type Role } from "../src/http/auth.js";
import { createServer, type Server } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory.js";

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

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

async function served() {
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
  for (const namespace of ["main", "other"]) await coordinator.initNamespace(namespace);
  const server = await createServer({ coordinator, release: "0.0.0", authenticator, startedWith });
  servers.push(server);
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const statusOf = async (method: string, path: string, headers: Record<string, string>) => {
    const answer = await fetch(url + path, { method, headers });
    await answer.body?.cancel();
    return answer.status;
  };
  const messageAt = async (path: string, headers: Record<string, string>) =>
    ((await (await fetch(url + path, { headers })).json()) as { message: string }).message;
  return { statusOf, messageAt };
}

test("a message names the store to an operator of all namespaces, and to no other client", async () => {
  const { messageAt } = await served();
  const path = "/v1/namespaces/lists/status";
  const command = (store: string) => `run \`callnumber init --store ${store} --namespace lists\``;
  expect(await messageAt(path, { "x-role": "operator" })).toContain(command("'sqlite:/it'\\''s.db'"));
  for (const headers of [{ "x-role": "read" }, { "x-role": "operator", "x-namespaces": "lists" }])
    expect(await messageAt(path, headers)).toContain(command("STORE_URL"));
});

const PATHS: readonly [method: string, path: string, roles: readonly Role[]][] = [
  ["POST", "/v1/namespaces/main/leases", ["lease"]],
  ["POST", "/v1/namespaces/main/runs/1/report", ["lease"]],
  ["GET", "/v1/namespaces/main/runs", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/runs/1", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/call-numbers/2VznWE2i", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/status", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/capacity", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/history", ["read", "operator"]],
  ["GET", "/v1/namespaces/main/export", ["read", "operator"]],
  ["POST", "/v1/namespaces/main/labels", ["operator"]],
  ["GET", "/v1/namespaces", ["read", "operator"]],
  ["GET", "/v1/events", ["read", "operator"]],
  ["GET", "/metrics", ["read", "operator"]],
  ["GET", "/v1/settings", ["operator"]],
];

describe.each(PATHS)("%s %s", (method, path, roles) => {
  test(`is for ${roles.join(" and ")} only`, async () => {
    const { statusOf } = await served();
    expect(await statusOf(method, path, {})).toBe(401);
    for (const role of ROLES) {
      const status = await statusOf(method, path, { "x-role": role });
      if (roles.includes(role)) expect([401, 403], role).not.toContain(status);
      else expect(status, role).toBe(403);
    }
  });

  test("is not for those of another namespace", async () => {
    const { statusOf } = await served();
    const headers = { "x-role": roles[0] as string, "x-namespaces": "other" };
    const status = await statusOf(method, path, headers);
    if (["/v1/namespaces", "/v1/events"].includes(path)) expect(status).toBe(200);
    else expect(status).toBe(403);
    if (path.includes("main"))
      expect(await statusOf(method, path, { ...headers, "x-namespaces": "main" })).not.toBe(403);
  });
});

test.each(["/healthz", "/readyz", "/openapi.json", "/console/"])("%s is for everybody", async (path) => {
  const { statusOf } = await served();
  expect(await statusOf("GET", path, {})).toBe(200);
});
