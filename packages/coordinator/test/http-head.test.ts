/** HEAD does no work: where it would be that of GET, it is refused, and nothing is asked. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { createServer, type Server } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory.js";

let asked: string[];
let server: Server;
let base: string;

/** A store that notes what is asked of it. */
function notingStore(): MemoryStore {
  return new Proxy(new MemoryStore(), {
    get(store, name) {
      const value: unknown = Reflect.get(store, name, store);
      if (typeof value !== "function") return value;
      return (...parameters: readonly unknown[]) => {
        asked.push(String(name));
        return value.apply(store, parameters);
      };
    },
  });
}

beforeEach(async () => {
  asked = [];
  const coordinator = new Coordinator({ store: notingStore(), name: "c" });
  await coordinator.initNamespace("main");
  server = await createServer({ coordinator, release: "0.0.0", publicInspect: true });
  base = await server.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(() => server.stop());

/** Every path that is described, and those that are not, filled in. */
async function pathsOfGet(): Promise<string[]> {
  const { paths } = (await (await fetch(`${base}/openapi.json`)).json()) as { paths: Record<string, object> };
  const described = Object.keys(paths).filter((path) => "get" in (paths[path] as object));
  const filled = described.map((path) => path.replace("{namespace}", "main").replace(/\{\w+\}/, "1"));
  return [...filled, "/metrics", "/openapi.json"];
}

const FREE = ["/healthz", "/readyz", "/console/"];

test("is refused everywhere but where it costs nothing, with the method that is right, and asks the store nothing", async () => {
  const paths = (await pathsOfGet()).filter((path) => !FREE.includes(path));
  expect(paths.length).toBeGreaterThan(11);
  asked = [];
  for (const path of paths) {
    const answer = await fetch(base + path, { method: "HEAD" });
    expect([path, answer.status, answer.headers.get("allow")]).toEqual([path, 405, expect.stringMatching(/^GET\b/)]);
    expect(await answer.text()).toBe("");
  }
  expect(asked).toEqual([]);
});

test.each(FREE)("is answered as GET is at %s, without a body", async (path) => {
  const [head, whole] = [await fetch(base + path, { method: "HEAD" }), await fetch(base + path)];
  expect(head.status).toBe(200);
  expect(await head.text()).toBe("");
  for (const name of ["content-type", "content-length"]) expect(head.headers.get(name)).toBe(whole.headers.get(name));
});
