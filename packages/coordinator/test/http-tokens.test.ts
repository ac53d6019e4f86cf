/** Tokens over real sockets: what a wrong one is told, what a right one reaches, and where its id is written. */

import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { namespacesResponseSchema } from "@callnumber/protocol/operator-schemas";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { EventHub } from "../src/events/events.js";
import { RecentEvents } from "../src/events/recent-events.js";
import { ROLES } from "../src/http/auth.js";
import { createServer, type Server } from "../src/http/server.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";
import { makeToken, newToken, type TokenSettings } from "../src/tokens/token.js";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";
import { holder } from "./commands-for-test.js";

const toStop: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of toStop.splice(0).reverse()) await stop();
});

const made = (role: TokenSettings["role"], namespaces: TokenSettings["namespaces"]) =>
  makeToken({ role, namespaces }, new Set(), 1);

/** A coordinator of the namespaces `main` and `other`, with a token of each role for each reach. */
async function served() {
  const told: Record<string, unknown>[] = [];
  const events = new EventHub(SILENT_LOG);
  events.subscribe(({ event, fields }) => void told.push({ event, ...fields }));
  const recentEvents = new RecentEvents();
  events.subscribe(recentEvents.take);
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c", log: events });
  for (const namespace of ["main", "other"]) await coordinator.initNamespace(namespace);
  const tokens = {
    lease: made("lease", ["main"]),
    read: made("read", ["main"]),
    readAll: made("read", "all"),
    operator: made("operator", ["main"]),
  };
  const authenticator = new TokenAuthenticator(Object.values(tokens).map(({ record }) => record));
  const server: Server = await createServer({
    coordinator,
    release: "0.0.0",
    events,
    recentEvents,
    authenticator,
  });
  toStop.push(() => server.stop());
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const ask = (path: string, token: string, init: RequestInit = {}) =>
    fetch(url + path, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } });
  const lease = (namespace: string, token: string) =>
    ask(`/v1/namespaces/${namespace}/leases`, token, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        runCount: 1,
        nonce: "nonce-0123456789",
        holder,
        lastRun: null,
        receipt: null,
        sentAtMs: 1_790_000_000_000,
      }),
    });
  return { coordinator, authenticator, tokens, told, url, ask, lease, port: Number(new URL(url).port) };
}

/** The answer to a request whose head stands there word for word, without its date. */
async function answerTo(port: number, head: readonly string[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.write([...head, "host: 127.0.0.1", "connection: close", "", ""].join("\r\n"));
  await once(socket, "close");
  return text.replace(/^date: .*\r\n/im, "");
}

describe("a wrong token", () => {
  test("is answered as a revoked one, a malformed one and none are: byte for byte the same", async () => {
    const { port, authenticator, tokens } = await served();
    const good = tokens.readAll.token;
    const revoked = made("read", "all");
    authenticator.replace([...Object.values(tokens), revoked].map(({ record }) => record));
    authenticator.replace(Object.values(tokens).map(({ record }) => record));
    const right = [
      [`Authorization: Bearer ${good}`],
      [`authorization: bearer ${good}`],
      [`AUTHORIZATION: BEARER   ${good}`],
      [`authorization:  Bearer ${good}  `],
    ];
    const wrong = [
      [],
      ["authorization:"],
      ["authorization: Bearer"],
      [`authorization: ${good}`],
      [`authorization: Basic ${good}`],
      [`authorization: Basic ${Buffer.from(`x:${good}`).toString("base64")}`],
      [`authorization: Bearer ${newToken()}`],
      [`authorization: Bearer ${revoked.token}`],
      [`authorization: Bearer ${good.slice(0, -1)}`],
      [`authorization: Bearer ${good}A`],
      [`authorization: Bearer ${good}=`],
      [`authorization: Bearer "${good}"`],
      [`authorization: Bearer ${good},${good}`],
      [`authorization: Bearer ${good} ${good}`],
      [`authorization: Bearer\t${good}`],
      [`authorization: Bearer ${good.toUpperCase()}`],
      [`authorization: Bearer ${tokens.readAll.record.id}`],
      [`authorization: Bearer ${tokens.readAll.record.sha256}`],
      [`proxy-authorization: Bearer ${good}`],
      [`x-authorization: Bearer ${good}`],
      [`cookie: token=${good}`],
      [`authorization: Bearer ${good}`, `authorization: Bearer ${good}`],
      [`authorization: Bearer ${good}`, "authorization: Basic eDp5"],
      ["authorization: Bearer x", `Authorization: Bearer ${good}`],
    ];
    const status = "GET /v1/namespaces/main/status HTTP/1.1";
    for (const head of right) expect(await answerTo(port, [status, ...head]), head.join()).toMatch(/^HTTP\/1\.1 200 /);
    const answers = new Set<string>();
    for (const head of wrong) answers.add(await answerTo(port, [status, ...head]));
    expect([...answers]).toEqual([expect.stringMatching(/^HTTP\/1\.1 401 .*\r\nwww-authenticate: Bearer\r\n/is)]);
  });

  test("in the address lets nobody in", async () => {
    const { url, tokens } = await served();
    const { token } = tokens.readAll;
    for (const path of [`/v1/namespaces?access_token=${token}`, `/v1/${token}`]) {
      expect([400, 404]).toContain((await fetch(url + path)).status);
    }
  });

  test("discards no run", async () => {
    const { coordinator, lease, tokens } = await served();
    const refused = await Promise.all([
      lease("main", newToken()),
      lease("main", tokens.read.token),
      lease("other", tokens.lease.token),
    ]);
    expect(refused.map(({ status }) => status)).toEqual([401, 403, 403]);
    for (const namespace of ["main", "other"]) expect((await coordinator.status(namespace)).runsUsed).toBe(0);
  });
});

describe("a token that is revoked between the head of a request and its body", () => {
  const NONCE = "nonce-0123456789";

  test.each([
    ["leases", { runCount: 1, nonce: "nonce-another-one", holder, lastRun: null, receipt: null, sentAtMs: 1 }],
    ["runs/1/report", { nonce: NONCE, lastSequence: 7, state: "open" }],
  ])("is refused at %s, and nothing is written", async (path, body) => {
    const { coordinator, authenticator, tokens, port, told, lease } = await served();
    expect((await lease("main", tokens.lease.token)).status).toBe(201);
    const before = await coordinator.run("main", 1);
    expect(before.lease.nonce).toBe(NONCE);
    const text = JSON.stringify(body);
    const head = [`POST /v1/namespaces/main/${path} HTTP/1.1`, "host: 127.0.0.1", "content-type: application/json"];
    const fields = [`authorization: Bearer ${tokens.lease.token}`, `content-length: ${text.length}`];
    const asked = vi.spyOn(authenticator, "authenticate");
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.write([...head, ...fields, "", text.slice(0, 5)].join("\r\n"));
    await expect.poll(() => asked.mock.results.map(({ value }) => value?.tokenId)).toEqual([tokens.lease.record.id]);
    authenticator.replace([tokens.readAll.record]);
    socket.write(text.slice(5));
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 401 .*\r\nwww-authenticate: Bearer\r\n.*"unauthorized"/is);
    expect((await coordinator.status("main")).runsUsed).toBe(1);
    expect(await coordinator.run("main", 1)).toEqual(before);
    expect(told.at(-1)).toMatchObject({
      event: "request_rejected",
      code: "unauthorized",
      tokenId: tokens.lease.record.id,
    });
  });
});

describe("the id of a token", () => {
  test("stands in the ledger, in the log's line of the lease, and in that of a refusal", async () => {
    const { coordinator, lease, tokens, told } = await served();
    expect((await lease("main", tokens.lease.token)).status).toBe(201);
    expect((await lease("other", tokens.lease.token)).status).toBe(403);
    expect((await lease("main", newToken())).status).toBe(401);
    const { id: tokenId } = tokens.lease.record;
    expect((await coordinator.run("main", 1)).lease).toMatchObject({ tokenId });
    expect(told.find(({ event }) => event === "lease")).toMatchObject({ tokenId });
    expect(told.filter(({ event }) => event === "request_rejected")).toEqual([
      expect.objectContaining({ code: "forbidden", namespace: "other", tokenId, remoteAddress: "127.0.0.1" }),
      expect.objectContaining({ code: "unauthorized", tokenId: undefined, remoteAddress: "127.0.0.1" }),
    ]);
  });

  test("is missing where nobody was asked for one", async () => {
    const { coordinator, told } = await served();
    const request = { runCount: 1, nonce: "nonce-0123456789", holder, lastRun: null, receipt: null, sentAtMs: 1 };
    await coordinator.lease("main", request);
    expect("tokenId" in (await coordinator.run("main", 1)).lease).toBe(false);
    expect(told.find(({ event }) => event === "lease")).toMatchObject({ tokenId: undefined });
  });
});

describe("of namespaces", () => {
  test("a caller is told of its own, and of all when all are its own", async () => {
    const { ask, tokens } = await served();
    const namesFor = async (token: string) => {
      const answer = namespacesResponseSchema.parse(await (await ask("/v1/namespaces", token)).json());
      return answer.namespaces.map(({ namespace }) => namespace);
    };
    expect(await namesFor(tokens.read.token)).toEqual(["main"]);
    expect(await namesFor(tokens.operator.token)).toEqual(["main"]);
    expect(await namesFor(tokens.readAll.token)).toEqual(["main", "other"]);
    expect((await ask("/v1/namespaces", tokens.lease.token)).status).toBe(403);
  });

  test("one that is not there and one that is another's are refused alike", async () => {
    const { ask, tokens } = await served();
    const answers = await Promise.all(
      ["other", "nowhere"].map(
        async (name) => await (await ask(`/v1/namespaces/${name}/status`, tokens.read.token)).text(),
      ),
    );
    expect(answers[0]).toBe(answers[1]);
  });
});

describe("whether it is ready", () => {
  test("everybody may hear, and which namespaces there are, only who may see them", async () => {
    const { url, ask, tokens } = await served();
    const stranger = await fetch(`${url}/readyz`);
    expect([stranger.status, await stranger.json()]).toEqual([200, { ready: true, namespaces: [], unavailable: [] }]);
    expect(await (await ask("/readyz", newToken())).json()).toEqual({ ready: true, namespaces: [], unavailable: [] });
    expect(await (await ask("/readyz", tokens.read.token)).json()).toEqual({
      ready: true,
      namespaces: ["main"],
      unavailable: [],
    });
    expect(await (await ask("/readyz", tokens.readAll.token)).json()).toMatchObject({ namespaces: ["main", "other"] });
  });

  test("and why not, only who may see all of them", async () => {
    const { url, ask, tokens, coordinator } = await served();
    vi.spyOn(coordinator, "assertReady").mockRejectedValue(
      new CoordinatorError("namespace_lost", 'namespace "other": gone from redis://inside:6379', {
        retryAfterMs: 7_000,
      }),
    );
    for (const answer of [await fetch(`${url}/readyz`), await ask("/readyz", tokens.read.token)]) {
      expect(answer.status).toBe(503);
      const text = await answer.text();
      expect(JSON.parse(text)).toMatchObject({ code: "namespace_lost" });
      expect(text).not.toMatch(/other|inside/);
    }
    expect(await (await ask("/readyz", tokens.readAll.token)).text()).toContain("redis://inside");
  });
});

describe("the event stream", () => {
  async function read(answer: Response) {
    const ended = { value: false };
    let text = "";
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    void (async () => {
      try {
        for (;;) {
          const { value, done } = (await reader?.read()) ?? { done: true, value: undefined };
          if (done) break;
          text += value;
        }
      } catch {
        // Cut off, which is an end.
      }
      ended.value = true;
    })();
    toStop.push(async () => void (await reader?.cancel().catch(() => {})));
    return { text: () => text, ended };
  }
  const namespacesIn = (text: string) =>
    [...text.matchAll(/^data: (.+)$/gm)].map(
      ([, json]) => (JSON.parse(json as string) as { namespace: string | null }).namespace,
    );

  test("tells a caller of its own namespaces, past and present, and of nothing that concerns all", async () => {
    const { ask, coordinator, tokens, authenticator } = await served();
    const some = await read(await ask("/v1/events?recent=yes", tokens.read.token));
    const all = await read(await ask("/v1/events?recent=yes", tokens.readAll.token));
    expect(authenticator.principalOf(tokens.read.token)).toBeDefined();
    await coordinator.labelNamespace("other", { a: "b" });
    await coordinator.labelNamespace("main", { a: "b" });
    await fetchRefused(ask);
    await coordinator.labelNamespace("main", { a: "c" });
    await expect.poll(() => all.text()).toContain('"a":"c"');
    await expect.poll(() => some.text()).toContain('"a":"c"');
    expect(new Set(namespacesIn(all.text()))).toEqual(new Set(["main", "other", null]));
    expect(new Set(namespacesIn(some.text()))).toEqual(new Set(["main"]));
    expect(some.text()).not.toContain("other");
  });

  /** A refusal that concerns no namespace. */
  const fetchRefused = async (ask: (path: string, token: string) => Promise<Response>) =>
    void (await ask("/metrics", newToken()));

  test("of another namespace is forbidden", async () => {
    const { ask, tokens } = await served();
    const answer = await ask("/v1/events?namespace=other", tokens.read.token);
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ code: "forbidden" });
    const own = await ask("/v1/events?namespace=main", tokens.read.token);
    expect(own.status).toBe(200);
    await own.body?.cancel();
  });

  test("ends with the token, before it tells anything more; those of other tokens go on", async () => {
    const { ask, coordinator, tokens, authenticator } = await served();
    const revoked = await read(await ask("/v1/events", tokens.read.token));
    const stays = await read(await ask("/v1/events", tokens.readAll.token));
    await coordinator.labelNamespace("main", { a: "before" });
    await expect.poll(() => revoked.text()).toContain("before");
    authenticator.replace([tokens.readAll.record]);
    // Not even of a namespace that it was told of: the next word of anything ends it.
    await coordinator.labelNamespace("other", { a: "after" });
    await expect.poll(() => revoked.ended.value).toBe(true);
    await expect.poll(() => stays.text()).toContain("after");
    await delay(20);
    expect(stays.ended.value).toBe(false);
    expect(revoked.text()).not.toContain("after");
  });
});

test("each role is let in by a token of its own, wherever the token stands in the file", async () => {
  const { authenticator } = await served();
  const records = ROLES.map((role) => made(role, "all"));
  for (const order of [records, records.toReversed()]) {
    authenticator.replace(order.map(({ record }) => record));
    for (const { token, record } of records) expect(authenticator.principalOf(token)?.tokenId).toBe(record.id);
  }
});
