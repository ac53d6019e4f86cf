/** All routes there are, with their permissions, and the headers that protect them in a browser. */
import type { FastifyInstance } from "fastify";
import { beforeEach, expect, test, vi } from "vitest";
import { served } from "./served.js";

/** Each route that the server of this file was given. */
const routes = vi.hoisted(() => new Set<string>());

vi.mock("../src/http/app.js", async (original) => {
  const real = await original<typeof import("../src/http/app.js")>();
  const newApp = (...parameters: Parameters<typeof real.newApp>) => {
    const app = real.newApp(...parameters);
    (app as unknown as FastifyInstance).addHook("onRoute", ({ method, url, config }) => {
      for (const one of [method].flat()) routes.add(`${one} ${url} ${config?.permission ?? "none"}`);
    });
    return app;
  };
  return { ...real, newApp };
});

let url: string;

beforeEach(async () => {
  const commands = { storeOption: "--store memory:", checkpointOption: "" };
  ({ url } = await served({ startedWith: { store: "memory:", startedAtMs: 1, settings: [], commands } }));
});

test.each([
  "/v1/namespaces/main/runs",
  "/v1/namespaces",
  "/v1/events",
  "/metrics",
  "/v1/namespaces/main/export",
  "/console/",
  "/console/favicon.svg",
  "/healthz",
  "/nowhere",
  "/openapi.json",
])("%s may be loaded by pages of its own site alone, and as its own type", async (path) => {
  const { headers, body } = await fetch(url + path);
  await body?.cancel();
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
  expect(headers.get("access-control-allow-origin")).toBeNull();
  expect(headers.get("set-cookie")).toBeNull();
});

test("the console's page allows no frame, no form and no script but its own", async () => {
  const page = await fetch(`${url}/console/`, { headers: { "sec-fetch-site": "none" } });
  const policy = String(page.headers.get("content-security-policy")).split(/; ?/);
  expect(policy).toEqual(
    expect.arrayContaining(["default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "script-src 'self'"]),
  );
  expect(policy.join()).not.toMatch(/unsafe|data:|https?:|\*/);
  expect(page.headers.get("cross-origin-opener-policy")).toBe("same-origin");
  expect(page.headers.get("strict-transport-security")).toBeNull();
});

test("the routes include no store command, and what changes anything is a POST", () => {
  const changing = [...routes].filter((route) => !/^(GET|HEAD) /.test(route)).sort();
  expect(changing).toEqual([
    "POST /v1/namespaces/:namespace/leases lease",
    "POST /v1/namespaces/:namespace/runs/:run/report lease",
  ]);
  const reading = [...routes].filter((route) => route.startsWith("GET ") && !route.startsWith("GET /console")).sort();
  expect(reading).toEqual([
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
  const files = [...routes]
    .filter((route) => / \/console/.test(route))
    .map((route) => route.replace(/-[\w-]{8}\./, "."));
  expect(files.filter((route) => route.startsWith("GET ")).sort()).toEqual([
    "GET /console none",
    "GET /console/ none",
    "GET /console/assets/index.css none",
    "GET /console/assets/index.js none",
    "GET /console/favicon.svg none",
    "GET /console/index.html none",
  ]);
});
