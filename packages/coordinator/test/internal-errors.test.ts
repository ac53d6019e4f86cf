/** What a client sees of an internal error: the same words whatever it was, and nothing of where and why. */
import { expect, test } from "vitest";
import { MemoryStore } from "../src/stores/memory.js";
import { leaseRequest, served } from "./served.js";

const SECRET = "redis://me:geheim@10.0.0.9/var/lib/callnumber";

const FAULTS: readonly [name: string, fault: unknown][] = [
  ["an error", new Error(SECRET)],
  ["a misuse of ours", new TypeError(SECRET)],
  ["an error of the system", Object.assign(new Error(SECRET), { code: "EACCES", path: SECRET })],
  ["an error with a cause", new Error(SECRET, { cause: new Error(SECRET) })],
  ["no error at all", SECRET],
  ["nothing", undefined],
];

const IN_MAIN = "/v1/namespaces/main";
const REQUESTS: readonly [method: string, path: string, body?: object][] = [
  ["GET", `${IN_MAIN}/status`],
  ["GET", `${IN_MAIN}/runs`],
  ["GET", `${IN_MAIN}/runs/1`],
  ["GET", `${IN_MAIN}/call-numbers/00000000`],
  ["GET", "/v1/namespaces"],
  ["GET", "/readyz"],
  ["POST", `${IN_MAIN}/leases`, leaseRequest()],
];

test.each(FAULTS)("%s has the same response on every path, and its details are in the log only", async (_, fault) => {
  const store = new MemoryStore();
  const { events, call } = await served({ own: { store } });
  const logged: unknown[] = [];
  events.subscribe(({ event, fields }) => {
    if (event === "internal_error") logged.push((fields as { readonly err?: unknown }).err);
  });
  const fail = () => Promise.reject(fault);
  Object.assign(store, { step: fail, readNamespace: fail, listNamespaces: fail, leases: fail });
  let faultCount = 0;
  for (const [method, path, body] of REQUESTS) {
    const { status, headers, text } = await call(method, path, body);
    expect(text + JSON.stringify([...headers])).not.toMatch(/geheim|10\.0\.0\.9|\.ts|\.js|node:|at .*\(/);
    if (status !== 500) continue;
    faultCount++;
    const message = "internal error; the log of the coordinator has the details";
    expect(JSON.parse(text)).toEqual({ code: "internal_error", message });
  }
  expect(faultCount).toBeGreaterThan(2);
  expect(logged).toEqual(Array.from({ length: faultCount }, () => fault));
});
