/** The event stream over real sockets: what it sends, that a client continues after a break, and that it waits for no client. */
import { once } from "node:events";
import { createServer as createPlainServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { operatorEventSchema } from "@callnumber/protocol/schemas";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { EventHub } from "../src/events/events.js";
import { RecentEvents } from "../src/events/recent-events.js";
import { UNRESTRICTED } from "../src/http/auth.js";
import { EventStreams } from "../src/http/event-streams.js";
import { STREAM_COUNT_MAX } from "../src/http/in-flight-limits.js";
import { SILENT_LOG } from "../src/log.js";
import { openStream } from "./raw-client.js";
import { served } from "./served.js";

let events: EventHub;
let { server, url, get } = {} as Awaited<ReturnType<typeof served>>;

beforeEach(async () => {
  events = new EventHub(SILENT_LOG);
  const recentEvents = new RecentEvents();
  events.subscribe(recentEvents.take);
  ({ server, url, get } = await served({ events, recentEvents }));
});

const stream = (query = "", headers: Readonly<Record<string, string>> = {}, localAddress?: string) =>
  openStream(`${url}/v1/events${query}`, headers, localAddress);

test("the event stream sends each event as it happens, with its number", async () => {
  const { response, text } = await stream();
  expect(response.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
  expect(response.headers["cache-control"]).toBe("no-store");
  events.warn({ namespace: "main", mark: 7 }, "recovered");
  await expect.poll(text).toMatch(/id: \w+-2\ndata: \{"id":2,.*"event":"recovered","namespace":"main".*\}\n\n/);
  expect(text()).not.toContain('"event":"init"');
});

test("an event of the stream has the fields that OpenAPI describes, and no other", async () => {
  const { text } = await stream("?recent=yes");
  events.warn({ namespace: "main", code: "rate_limited", mark: 7 }, "request_rejected");
  events.warn({ reason: "away" }, "heartbeat_failed");
  await expect.poll(text).toContain("heartbeat_failed");
  const sent = [...text().matchAll(/^data: (.+)$/gm)].map(([, data = ""]) => JSON.parse(data));
  expect(sent.length).toBeGreaterThan(2);
  for (const event of sent) expect(operatorEventSchema.strict().parse(event)).toEqual(event);
});

test("the event stream sends the events of one namespace, and those that concern all", async () => {
  const { text } = await stream("?namespace=main");
  events.warn({ namespace: "lists" }, "recovered");
  events.warn({ namespace: "main" }, "stopped");
  events.warn({ reason: "away" }, "heartbeat_failed");
  await expect.poll(text).toContain("heartbeat_failed");
  expect(text()).toContain("stopped");
  expect(text()).not.toContain("lists");
});

test("the event stream continues after the last event of a client that reconnects", async () => {
  const first = await stream();
  events.warn({ namespace: "main" }, "recovered");
  await expect.poll(first.text).toContain("recovered");
  first.response.destroy();
  events.info({ namespace: "main" }, "active");
  const [, lastId = ""] = /^id: (.+)$/m.exec(first.text()) ?? [];
  const { text } = await stream("", { "last-event-id": lastId });
  await expect.poll(text).toContain('"event":"active"');
  expect([...text().matchAll(/^id: \w+-(\d+)$/gm)].map(([, id]) => id)).toEqual(["3"]);
  expect(text()).not.toContain("event: gap");
});

test("the event stream reports a gap after an event of an earlier process, and sends all that it has", async () => {
  const { text } = await stream("", { "last-event-id": "0123456789ab-1" });
  await expect.poll(text).toContain('"event":"init"');
  expect(text()).toContain('event: gap\ndata: {"lastEventId":"0123456789ab-1"}');
});

test("the event stream ends completely when the coordinator stops, which does not wait for it", async () => {
  const { response } = await stream();
  // A stop that waited would cut the connection in the end, and the client would see an error.
  await Promise.all([server.stop(), once(response, "end")]);
});

test("the event stream begins with all recent events on request, however many they are", async () => {
  for (let count = 0; count < 300; count++)
    events.warn({ namespace: "main", reason: "x".repeat(8_000), count }, "heartbeat_failed");
  const { text } = await stream("?recent=yes");
  await expect.poll(text).toContain('"count":299');
  expect(text()).toContain('"event":"init"');
});

test("each event is serialized once, however many streams begin", async () => {
  let madeCount = 0;
  const counted = { toJSON: () => `made ${++madeCount} times` };
  events.warn({ namespace: "main", counted }, "recovered");
  for (let count = 0; count < 3; count++)
    await expect.poll((await stream("?recent=yes")).text).toContain("made 1 times");
  events.warn({ namespace: "main", counted }, "active");
  await expect.poll((await stream("?recent=yes")).text).toContain("made 2 times");
  expect(madeCount).toBe(2);
});

test("a client that does not read is cut off with a bounded backlog, and other clients get all", async () => {
  const recent = new RecentEvents();
  const streams = new EventStreams(recent);
  const responses: ServerResponse[] = [];
  const plain = createPlainServer((_request, response) => {
    response.writeHead(200);
    streams.begin({ response, namespace: undefined, principal: UNRESTRICTED, isStillValid: () => true });
    responses.push(response);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void plain.close());
  await once(plain, "listening");
  const { port } = plain.address() as AddressInfo;
  const slow = connect(port, "127.0.0.1");
  slow.on("error", () => {}).write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await expect.poll(() => responses.length).toBe(1);
  const quick = request({ port, host: "127.0.0.1" }).end();
  onTestFinished(() => void quick.destroy());
  const [reading] = (await once(quick, "response")) as [IncomingMessage];
  let quickBytes = 0;
  reading.on("data", (chunk: Buffer) => {
    quickBytes += chunk.length;
  });
  const [response] = responses as [ServerResponse];
  let waitingBytesMax = 0;
  let sentBytes = 0;
  const text = "x".repeat(64 * 1024);
  while (!response.destroyed) {
    recent.take({ level: "warn", event: "recovered", fields: { text } });
    sentBytes += text.length;
    waitingBytesMax = Math.max(waitingBytesMax, response.writableLength);
    for (;;) {
      if (quickBytes >= sentBytes) break;
      await delay(1);
    }
  }
  expect(waitingBytesMax).toBeGreaterThan(1024 * 1024);
  expect(waitingBytesMax).toBeLessThan(1.2 * 1024 * 1024);
  expect(responses[1]?.destroyed).toBe(false);
  slow.destroy();
  streams.close();
});

test("one address may open half of all event streams, and one more after one has closed", async () => {
  const streams = await Promise.all(Array.from({ length: STREAM_COUNT_MAX / 2 }, () => stream()));
  expect(await get("/v1/events")).toMatchObject({ status: 503, body: { code: "too_many_streams" } });
  expect((await stream("", {}, "127.0.0.2")).status).toBe(200);
  streams[0]?.response.destroy();
  await expect.poll(async () => (await stream()).status).toBe(200);
});

test("the event stream sends an empty comment regularly, so that no proxy closes it as idle", async () => {
  const intervals = vi.spyOn(globalThis, "setInterval");
  onTestFinished(() => intervals.mockRestore());
  const { text } = await stream();
  await expect.poll(text).toContain("retry: 2000");
  const [beat, everyMs] = intervals.mock.calls.find(([, ms]) => ms === 15_000) as [() => void, number];
  expect(everyMs).toBe(15_000);
  beat();
  await expect.poll(text).toContain("\n:\n\n");
});

test.each(["namespace=UPPER", "since=1"])("the event stream rejects the unknown query %s", async (query) => {
  expect((await get(`/v1/events?${query}`)).status).toBe(400);
});
