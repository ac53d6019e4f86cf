/** A token where a name belongs, or in an address or a trace: refused before anything is asked or written, and nowhere to be read. */
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { createServer, type Server } from "../src/http/server.js";
import { LeaseLimits } from "../src/limits/lease-limits.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { makeToken } from "../src/tokens/made-token.js";
import { newToken } from "../src/tokens/token.js";
import { TokenDoor } from "../src/tokens/token-door.js";
import { holder } from "./commands-for-test.js";

const importer = makeToken({ role: "lease", namespaces: ["main"] }, new Set(), 1);
const operator = makeToken({ role: "operator", namespaces: "all" }, new Set(), 1);
/** What follows the prefix; no form of the token is anywhere without it. */
const SECRET = importer.token.slice(3);
const NEARLY_WHOLE = importer.token.slice(0, -1);

let server: Server;
let coordinator: Coordinator;
let base: string;
/** The log as it is written, and every answer. */
let said: string;

beforeEach(async () => {
  said = "";
  const write = (line: string) => {
    said += line;
  };
  const events = new EventHub(pino({ level: "debug" }, { write }));
  coordinator = new Coordinator({ store: new MemoryStore(), name: "c", log: events });
  await coordinator.initNamespace("main");
  // One start, and no more: what is refused must not have taken it.
  const limits = new LeaseLimits({ token: { atOnce: 1, perSecond: 0.001 } });
  const door = new TokenDoor([importer.record, operator.record]);
  server = await createServer({ coordinator, release: "0.0.0", events, limits, door });
  base = await server.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(() => server.stop());

async function asked(path: string, token: string | undefined, body?: object, headers: object = {}): Promise<number> {
  const answer = await fetch(base + path, {
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
  });
  said += await answer.text();
  return answer.status;
}

function lease(own: object, headers?: object): Promise<number> {
  const named = { ...holder, ...own };
  const body = {
    runCount: 1,
    nonce: "nonce-0123456789",
    holder: named,
    lastRun: null,
    receipt: null,
    sentAtMs: Date.now(),
  };
  return asked("/v1/namespaces/main/leases", importer.token, body, headers);
}

function expectUntold(): void {
  expect(said).not.toContain(SECRET.slice(0, 20));
}

describe("a lease", () => {
  test.each([
    ["the holder's name", { name: importer.token }],
    ["a part of the name", { name: `at ${importer.token}` }],
    ["the name, but for its end", { name: NEARLY_WHOLE }],
    ["the name, as an address writes it", { name: importer.token.replace("_", "%5F") }],
    ["the host", { host: `${importer.token}.example` }],
    ["a label", { labels: { team: "mail", key: importer.token } }],
    ["the name of a label", { labels: { [importer.token]: "x" } }],
  ])("with a token as %s is refused, takes nothing of a limit, and tells it to nobody", async (_, own) => {
    expect(await lease(own)).toBe(400);
    expect(said).toContain("invalid_request");
    expectUntold();
    expect((await coordinator.status("main")).highWaterMark).toBe(0);
    expect(await lease({})).toBe(201);
  });

  test("whose refusal says what was wrong", async () => {
    await lease({ host: importer.token });
    expect(said).toMatch(/holder\.host: holds a token, which everybody would read/);
  });

  test.each(["cn_mail-archive", "vcn_production_importer_eu_west", "cn"])(
    "of a holder whose name only begins like one, %s, is given",
    async (name) => {
      expect(await lease({ name })).toBe(201);
    },
  );

  test("has a trace whose token nobody is told", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    expect(await lease({}, { traceparent, tracestate: `a=1,b=${importer.token}` })).toBe(201);
    expect(said).toContain("a=1,b=cn_(token)");
    expectUntold();
  });
});

test("the labels of a namespace hold no token", async () => {
  const path = "/v1/namespaces/main/labels";
  expect(await asked(path, operator.token, { labels: { team: importer.token } })).toBe(400);
  expect(said).toMatch(/labels: holds a token/);
  expectUntold();
  expect(await asked(path, operator.token, { labels: { team: "mail" } })).toBe(200);
});

test.each([
  ["as it is", importer.token],
  ["with an escaped prefix", importer.token.replace("_", "%5F")],
  ["with one in small letters", importer.token.replace("_", "%5f")],
  ["escaped from its first letter on", `%63${importer.token.slice(1)}`],
])("a token in an address, %s, is not written down", async (_, form) => {
  for (const token of [undefined, newToken(), importer.token]) {
    expect(await asked(`/v1/namespaces/main/call-numbers/${form}`, token)).toBeGreaterThanOrEqual(401);
    expect(await asked(`/${form}`, token)).toBeGreaterThanOrEqual(400);
    expect(await asked(`/v1/namespaces/main/runs?holder=${form}`, token)).toBeGreaterThanOrEqual(401);
  }
  expect(said).toContain("unauthorized");
  expectUntold();
});
