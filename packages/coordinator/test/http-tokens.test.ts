/** Tokens over real sockets: what a wrong one gets, what a valid one gives access to, and where its id is written. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { namespacesResponseSchema } from "@callnumber/protocol/schemas";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { EventHub } from "../src/events/events.js";
import { RecentEvents } from "../src/events/recent-events.js";
import { SILENT_LOG } from "../src/log.js";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";
import { makeToken, newToken, type TokenSettings } from "../src/tokens/tokens-file.js";
import { holder, LEASE_NONCE } from "./commands-for-test.js";
import { opened, openStream, sendBytes } from "./raw-client.js";
import { leaseRequest, served } from "./served.js";

const made = (role: TokenSettings["role"], namespaces: TokenSettings["namespaces"]) =>
  makeToken({ role, namespaces }, new Set(), 1);

const importer = made("lease", ["main"]);
const reader = made("read", ["main"]);
const readerOfAll = made("read", "all");
const operator = made("operator", ["main"]);
const RECORDS = [importer, reader, readerOfAll, operator].map(({ record }) => record);

const STATUS = "/v1/namespaces/main/status";

let { coordinator, url, place, get, post } = {} as Awaited<ReturnType<typeof served>>;
let authenticator: TokenAuthenticator;
let logged: Record<string, unknown>[];

beforeEach(async () => {
  logged = [];
  const events = new EventHub(SILENT_LOG);
  events.subscribe(({ event, fields }) => void logged.push({ event, ...fields }));
  const recentEvents = new RecentEvents();
  events.subscribe(recentEvents.take);
  authenticator = new TokenAuthenticator(RECORDS);
  const options = { namespaces: ["main", "other"], events, recentEvents, authenticator };
  ({ coordinator, url, place, get, post } = await served(options));
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const getWith = (path: string, token: string) => get(path, bearer(token));
const leaseWith = (namespace: string, token: string) =>
  post(`/v1/namespaces/${namespace}/leases`, leaseRequest(), bearer(token));

/** The response to a request with exactly these headers, without its date. */
async function responseTo(headers: readonly string[]): Promise<string> {
  const head = [`GET ${STATUS} HTTP/1.1`, ...headers, "host: 127.0.0.1", "connection: close", "", ""];
  return (await sendBytes(place, [head.join("\r\n")])).text.replace(/^date: .*\r\n/im, "");
}

describe("a wrong token", () => {
  const { token } = readerOfAll;

  test("a wrong token gets the same response as a revoked one, a malformed one and none, byte for byte", async () => {
    const revoked = made("read", "all");
    authenticator.replace([...RECORDS, revoked.record]);
    authenticator.replace(RECORDS);
    const { record } = readerOfAll;
    const tokens = [
      "",
      newToken(),
      revoked.token,
      token.slice(0, -1),
      `${token}A`,
      `${token}=`,
      `"${token}"`,
      `${token},${token}`,
      `${token} ${token}`,
      token.toUpperCase(),
      record.id,
      record.sha256,
    ];
    const basic = `Basic ${Buffer.from(`x:${token}`).toString("base64")}`;
    const values = ["", "Bearer", token, `Basic ${token}`, basic, `Bearer\t${token}`];
    const heads = [
      [],
      ...tokens.map((one) => [`authorization: Bearer ${one}`]),
      ...values.map((value) => [`authorization: ${value}`]),
      ...["proxy-authorization", "x-authorization"].map((name) => [`${name}: Bearer ${token}`]),
      [`cookie: token=${token}`],
      [`authorization: Bearer ${token}`, `authorization: Bearer ${token}`],
      [`authorization: Bearer ${token}`, "authorization: Basic eDp5"],
      ["authorization: Bearer x", `Authorization: Bearer ${token}`],
    ];
    const responses = new Set<string>();
    for (const head of heads) responses.add(await responseTo(head));
    expect([...responses]).toEqual([expect.stringMatching(/^HTTP\/1\.1 401 .*\r\nwww-authenticate: Bearer\r\n/is)]);
  });

  test.each([`/v1/namespaces?access_token=${token}`, `/v1/${token}`])(
    "a valid token in the URL %s is rejected",
    async (path) => {
      expect([400, 404]).toContain((await get(path)).status);
    },
  );

  test("a wrong token, role or namespace leases no run", async () => {
    const responses = [
      await leaseWith("main", newToken()),
      await leaseWith("main", reader.token),
      await leaseWith("other", importer.token),
    ];
    expect(responses.map(({ status }) => status)).toEqual([401, 403, 403]);
    for (const namespace of ["main", "other"]) expect((await coordinator.status(namespace)).runsUsed).toBe(0);
  });
});

test.each([
  ["leases", leaseRequest({ nonce: "nonce-another-one" })],
  ["runs/1/report", { nonce: LEASE_NONCE, lastSequence: 7, state: "open" }],
])("a token revoked between head and body is rejected at %s, and nothing is written", async (path, body) => {
  expect((await leaseWith("main", importer.token)).status).toBe(201);
  const before = await coordinator.run("main", 1);
  const text = JSON.stringify(body);
  const head = [`POST /v1/namespaces/main/${path} HTTP/1.1`, "host: 127.0.0.1", "content-type: application/json"];
  const fields = [`authorization: Bearer ${importer.token}`, `content-length: ${text.length}`];
  const calls = vi.spyOn(authenticator, "authenticate");
  const socket = await opened(place);
  onTestFinished(() => void socket.destroy());
  socket.write([...head, ...fields, "", text.slice(0, 5)].join("\r\n"));
  const { id: tokenId } = importer.record;
  await expect.poll(() => calls.mock.results.map(({ value }) => value?.tokenId)).toEqual([tokenId]);
  authenticator.replace([readerOfAll.record]);
  socket.write(text.slice(5));
  const [response] = await once(socket, "data");
  expect(String(response)).toMatch(/^HTTP\/1\.1 401 .*\r\nwww-authenticate: Bearer\r\n.*"unauthorized"/is);
  expect((await coordinator.status("main")).runsUsed).toBe(1);
  expect(await coordinator.run("main", 1)).toEqual(before);
  expect(logged.at(-1)).toMatchObject({ event: "request_rejected", code: "unauthorized", tokenId });
});

test("the id of a token appears in the ledger, and in the log of a lease and of a rejection", async () => {
  expect((await leaseWith("main", importer.token)).status).toBe(201);
  expect((await leaseWith("other", importer.token)).status).toBe(403);
  expect((await leaseWith("main", newToken())).status).toBe(401);
  const { id: tokenId } = importer.record;
  expect((await coordinator.run("main", 1)).lease).toMatchObject({ tokenId });
  expect(logged.find(({ event }) => event === "lease")).toMatchObject({ tokenId });
  expect(logged.filter(({ event }) => event === "request_rejected")).toEqual([
    expect.objectContaining({ code: "forbidden", namespace: "other", tokenId, remoteAddress: "127.0.0.1" }),
    expect.objectContaining({ code: "unauthorized", tokenId: undefined, remoteAddress: "127.0.0.1" }),
  ]);
});

test("the id of a token is missing where no token is required", async () => {
  await coordinator.lease("main", leaseRequest());
  expect("tokenId" in (await coordinator.run("main", 1)).lease).toBe(false);
  expect(logged.find(({ event }) => event === "lease")).toMatchObject({ tokenId: undefined });
});

test.each([
  ["a reader of one", reader.token, ["main"]],
  ["an operator of one", operator.token, ["main"]],
  ["a reader of all", readerOfAll.token, ["main", "other"]],
])("the list of namespaces for %s has those of its token", async (_, token, expected) => {
  const { namespaces } = namespacesResponseSchema.parse((await getWith("/v1/namespaces", token)).body);
  expect(namespaces.map(({ namespace }) => namespace)).toEqual(expected);
});

test("a token's client can't find out whether a namespace of other tokens exists", async () => {
  const [other, unknown] = ["other", "nowhere"].map((name) => getWith(`/v1/namespaces/${name}/status`, reader.token));
  expect((await other)?.text).toBe((await unknown)?.text);
});

test("readiness shows a client only the namespaces that it may read", async () => {
  const none = { ready: true, namespaces: [], unavailable: [] };
  expect(await get("/readyz")).toMatchObject({ status: 200, body: none });
  expect((await getWith("/readyz", newToken())).body).toEqual(none);
  expect((await getWith("/readyz", reader.token)).body).toEqual({ ...none, namespaces: ["main"] });
  expect((await getWith("/readyz", readerOfAll.token)).body).toMatchObject({ namespaces: ["main", "other"] });
});

test("readiness shows why it failed only to a client that may read all namespaces", async () => {
  const error = new CoordinatorError("namespace_lost", 'namespace "other": gone from redis://inside:6379');
  vi.spyOn(coordinator, "assertReady").mockRejectedValue(error);
  for (const { status, text } of [await get("/readyz"), await getWith("/readyz", reader.token)]) {
    expect([status, JSON.parse(text).code]).toEqual([503, "namespace_lost"]);
    expect(text).not.toMatch(/other|inside/);
  }
  expect((await getWith("/readyz", readerOfAll.token)).text).toContain("redis://inside");
});

describe("the event stream", () => {
  const streamFor = ({ token }: { readonly token: string }, query = "") =>
    openStream(`${url}/v1/events${query}`, bearer(token));
  const leaseTo = (name: string, namespace: string) =>
    coordinator.lease(namespace, leaseRequest({ holder: { ...holder, name } }));

  test("the event stream has past and new events of the token's namespaces, and those of no namespace", async () => {
    const some = await streamFor(reader, "?recent=yes");
    const all = await streamFor(readerOfAll, "?recent=yes");
    await leaseTo("first", "other");
    await leaseTo("first", "main");
    // A rejection that concerns no namespace.
    await getWith("/metrics", newToken());
    await leaseTo("last", "main");
    const namespacesOf = async ({ text }: Awaited<ReturnType<typeof streamFor>>) => {
      await expect.poll(text).toContain('"name":"last"');
      const events = [...text().matchAll(/^data: (.+)$/gm)].map(([, json]) => JSON.parse(json as string));
      return new Set(events.map(({ namespace }) => namespace));
    };
    expect(await namespacesOf(all)).toEqual(new Set(["main", "other", null]));
    expect(await namespacesOf(some)).toEqual(new Set(["main"]));
    expect(some.text()).not.toContain("other");
  });

  test("the event stream of another namespace is forbidden", async () => {
    const rejection = { status: 403, body: { code: "forbidden" } };
    expect(await getWith("/v1/events?namespace=other", reader.token)).toMatchObject(rejection);
    expect((await streamFor(reader, "?namespace=main")).status).toBe(200);
  });

  test("the event stream ends when its token is revoked, before it shows more; other tokens' streams continue", async () => {
    const revoked = await streamFor(reader);
    const stays = await streamFor(readerOfAll);
    await leaseTo("before", "main");
    await expect.poll(revoked.text).toContain("before");
    authenticator.replace([readerOfAll.record]);
    // Also with the next event of another namespace.
    await leaseTo("after", "other");
    await expect.poll(revoked.hasEnded).toBe(true);
    await expect.poll(stays.text).toContain("after");
    await delay(20);
    expect(stays.hasEnded()).toBe(false);
    expect(revoked.text()).not.toContain("after");
  });
});
