/** What a client sees of an internal error: the same words whatever it was, and nothing of where and why. */
import { expect, onTestFinished, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { createServer } from "../src/http/server.js";
import type { Log } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";

const SECRET = "redis://me:geheim@10.0.0.9/var/lib/callnumber";

const FAULTS: readonly [name: string, fault: unknown][] = [
  ["an error", new Error(SECRET)],
  ["a misuse of ours", new TypeError(SECRET)],
  ["an error of the system", Object.assign(new Error(SECRET), { code: "EACCES", path: SECRET })],
  ["an error with a cause", new Error(SECRET, { cause: new Error(SECRET) })],
  ["no error at all", SECRET],
  ["nothing", undefined],
];

const REQUESTS: readonly [method: string, path: string, body?: object][] = [
  ["GET", "/v1/namespaces/main/status"],
  ["GET", "/v1/namespaces/main/runs"],
  ["GET", "/v1/namespaces/main/runs/1"],
  ["GET", "/v1/namespaces/main/call-numbers/00000000"],
  ["GET", "/v1/namespaces"],
  [
    "POST",
    "/v1/namespaces/main/leases",
    {
      runCount: 1,
      nonce: "nonce-0123456789",
      holder: { name: "importer", host: "mail-1", pid: 1, labels: {} },
      lastRun: null,
      receipt: null,
      sentAtMs: 1,
    },
  ],
];

test.each(FAULTS)(
  "%s is answered in the same words on every path, and its details are in the log only",
  async (_, fault) => {
    const store = new MemoryStore();
    const coordinator = new Coordinator({ store, name: "c" });
    await coordinator.initNamespace("main");
    const logged: string[] = [];
    const ignore = () => {};
    const log: Log = { debug: ignore, info: ignore, warn: ignore, error: (__, event) => void logged.push(event) };
    const server = await createServer({ coordinator, release: "0", events: new EventHub(log) });
    onTestFinished(() => server.stop());
    const url = await server.listen({ host: "127.0.0.1", port: 0 });
    const failing = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return () => Promise.reject(fault);
      },
    });
    for (const name of ["step", "readNamespace", "listNamespaces", "leases", "findLease", "lookUp"] as const) {
      if (name in store) Object.defineProperty(store, name, { value: Reflect.get(failing, name) });
    }
    let faultCount = 0;
    for (const [method, path, body] of REQUESTS) {
      const init = body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
      const answer = await fetch(url + path, { method, ...init });
      const text = await answer.text();
      const logged = text + JSON.stringify([...answer.headers]);
      expect(logged).not.toMatch(/geheim|10\.0\.0\.9|\.ts|\.js|node:|at .*\(/);
      if (answer.status !== 500) continue;
      faultCount++;
      expect(JSON.parse(text)).toEqual({
        code: "internal_error",
        message: "internal error; the log of the coordinator has the details",
      });
    }
    expect(faultCount).toBeGreaterThan(2);
    expect(logged.filter((event) => event === "internal_error")).toHaveLength(faultCount);
  },
);
