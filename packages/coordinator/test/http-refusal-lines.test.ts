/** What the log says of a refusal: who it was, as far as that is known, and nothing that acts on a terminal or that nobody should know. */
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { createServer, type Server } from "../src/http/server.js";
import { LeaseLimits } from "../src/limits/lease-limits.js";
import { MemoryStore } from "../src/stores/memory.js";
import { makeToken } from "../src/tokens/token.js";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";
import { holder } from "./commands-for-test.js";
import { faultsOfLog } from "./log-faults.js";
import { sendBytes } from "./raw-client.js";

const importer = makeToken({ role: "lease", namespaces: ["main"] }, new Set(), 1);

let server: Server;
let base: string;
/** The log as it is written. */
let log: string;

beforeEach(async () => {
  log = "";
  const write = (line: string) => {
    log += line;
  };
  const events = new EventHub(pino({ level: "debug" }, { write }));
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c", log: events });
  await coordinator.initNamespace("main");
  const limits = new LeaseLimits({ token: { atOnce: 1, perSecond: 0.001 } });
  server = await createServer({
    coordinator,
    release: "0.0.0",
    events,
    limits,
    authenticator: new TokenAuthenticator([importer.record]),
  });
  base = await server.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(() => server.stop());

const refusals = () =>
  log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === "request_rejected");

async function lease(own: object = {}, token = importer.token): Promise<number> {
  const nonce = "nonce-0123456789";
  const answer = await fetch(`${base}/v1/namespaces/main/leases`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ runCount: 1, nonce, holder, lastRun: null, receipt: null, sentAtMs: 1, ...own }),
  });
  await answer.text();
  return answer.status;
}

test("an importer that is too fast is named by its token, its holder and its address", async () => {
  expect([await lease(), await lease()]).toEqual([201, 429]);
  const { name, host } = holder;
  expect(refusals()).toEqual([
    expect.objectContaining({
      code: "rate_limited",
      tokenId: importer.record.id,
      holder: { name, host },
      remoteAddress: "127.0.0.1",
      namespace: "main",
    }),
  ]);
  expect(log).not.toContain(importer.token);
});

test("a stranger is named by the address, and what it says of itself is not believed: its body is not read", async () => {
  expect(await lease({}, `cn_${"A".repeat(43)}`)).toBe(401);
  const [line] = refusals();
  expect(line).toMatchObject({ code: "unauthorized", remoteAddress: "127.0.0.1" });
  expect(line).not.toHaveProperty("holder");
  expect(line).not.toHaveProperty("tokenId");
});

test("who is no HTTP at all is named by the address, too", async () => {
  await sendBytes({ host: "127.0.0.1", port: Number(new URL(base).port) }, ["no HTTP\r\n\r\n"]);
  expect(refusals()).toEqual([expect.objectContaining({ level: 20, remoteAddress: "127.0.0.1" })]);
});

test.each([
  ["ends the line and begins another", 'x"}\n{"level":30,"msg":"lease","namespace":"main","firstRun":9}'],
  ["acts on a terminal", "\u001b[2J\u009b1m\u0007"],
  ["turns, hides and breaks text", "\u202eabc\u200b\u2028\u2029\u0085"],
  ["is half a character", "\ud800"],
  ["is half a character where it is cut", `${"x".repeat(63)}😀`],
  ["is longer than any name", "n".repeat(1_500)],
])("a name that %s makes a line of its own, short and harmless", async (_, name) => {
  for (const own of [{ name }, { host: name }])
    expect(await lease({ holder: { ...holder, ...own }, runCount: 0 })).toBe(400);
  expect(faultsOfLog(log, [importer.token])).toEqual([]);
  const lines = refusals();
  expect(lines).toHaveLength(2);
  for (const { holder: told } of lines) expect(told).toEqual({ name: expect.any(String), host: expect.any(String) });
  expect(log.match(/"msg":"lease"/)).toBeNull();
});

test.each([[{ holder: "x" }], [{ holder: { name: { toString: "x" } } }], [{ holder: [] }], [{ holder: null }]])(
  "a body that names no holder, as %j, has a line without one",
  async (own) => {
    expect(await lease(own)).toBe(400);
    expect(refusals()).toEqual([expect.not.objectContaining({ holder: expect.anything() })]);
  },
);

test("a name and a host are cut to the length that they may have", async () => {
  expect(await lease({ holder: { ...holder, name: "n".repeat(400), host: "h".repeat(400) } })).toBe(400);
  expect(refusals()).toMatchObject([{ holder: { name: "n".repeat(64), host: "h".repeat(253) } }]);
});
