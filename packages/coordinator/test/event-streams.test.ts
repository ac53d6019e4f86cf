/** The event stream over real sockets: what is told, how a reader goes on after a break, and that nobody is waited for. */
import { once } from "node:events";
import {
  type ClientRequest,
  createServer as createPlainServer,
  type IncomingMessage,
  request,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { RecentEvents } from "../src/events/recent-events.js";
import { UNRESTRICTED } from "../src/http/auth.js";
import { EventStreams, STREAM_COUNT_MAX } from "../src/http/event-streams.js";
import { createServer, type Server } from "../src/http/server.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";

let hub: EventHub;
let server: Server;
let base: string;
const open = new Set<ClientRequest>();

beforeEach(async () => {
  hub = new EventHub(SILENT_LOG);
  const events = new RecentEvents();
  hub.subscribe(events.take);
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "test", log: hub });
  await coordinator.initNamespace("main");
  server = await createServer({ coordinator, release: "0.0.0", recentEvents: events });
  base = await server.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(async () => {
  for (const stream of open) stream.destroy();
  open.clear();
  await server.stop();
});

interface Reading {
  readonly response: IncomingMessage;
  readonly text: () => string;
  /** Resolves when the text holds it. */
  readonly until: (part: string) => Promise<void>;
}

async function read(
  query = "",
  headers: Readonly<Record<string, string>> = {},
  localAddress = "127.0.0.1",
): Promise<Reading> {
  const outgoing = request(`${base}/v1/events${query}`, { headers, localAddress }).end();
  open.add(outgoing);
  outgoing.on("error", () => {});
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  response.on("error", () => {});
  const until = async (part: string) => {
    while (!text.includes(part)) {
      if (response.destroyed) throw new Error(`the stream ended without ${part}: ${text}`);
      await delay(5);
    }
  };
  return { response, text: () => text, until };
}

const idsIn = (text: string) => [...text.matchAll(/^id: \w+-(\d+)$/gm)].map(([, id]) => Number(id));
const lastIdIn = (text: string) => [...text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] as string;

describe("the event stream", () => {
  test("tells what happens, as it happens, with its number", async () => {
    const reading = await read();
    expect(reading.response.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(reading.response.headers["cache-control"]).toBe("no-store");
    hub.warn({ namespace: "main", mark: 7 }, "jump");
    await reading.until('"event":"jump"');
    expect(reading.text()).toMatch(/id: \w+-2\ndata: \{"id":2,.*"event":"jump","namespace":"main".*\}\n\n/);
    expect(reading.text()).not.toContain('"event":"init"');
  });

  test("begins with what is still known, when that is asked for", async () => {
    const reading = await read("?recent=yes");
    await reading.until('"event":"init"');
  });

  test("tells of one namespace, and of what concerns all", async () => {
    const reading = await read("?namespace=main");
    hub.warn({ namespace: "lists" }, "jump");
    hub.warn({ namespace: "main" }, "stopped");
    hub.warn({ reason: "away" }, "heartbeat_failed");
    await reading.until("heartbeat_failed");
    expect(reading.text()).toContain("stopped");
    expect(reading.text()).not.toContain("lists");
  });

  test("goes on after a break where the reader stopped", async () => {
    const first = await read();
    hub.warn({ namespace: "main" }, "jump");
    await first.until("jump");
    first.response.destroy();
    hub.info({ namespace: "main" }, "active");
    const second = await read("", { "last-event-id": lastIdIn(first.text()) });
    await second.until('"event":"active"');
    expect(idsIn(second.text())).toEqual([3]);
    expect(second.text()).not.toContain("event: gap");
  });

  test("says that there is a gap after a number of an earlier process, and tells all that is known", async () => {
    const reading = await read("", { "last-event-id": "0123456789ab-1" });
    await reading.until('"event":"init"');
    expect(reading.text()).toContain('event: gap\ndata: {"lastEventId":"0123456789ab-1"}');
  });

  test("ends whole when the coordinator stops: it is not waited for, and not cut", async () => {
    const reading = await read();
    const ended = once(reading.response, "end");
    // A stop that waited would cut the connection in the end, and the reader would see an error.
    await Promise.all([server.stop(), ended]);
  });

  test("tells who has only just come everything that is kept, however much it is", async () => {
    for (let count = 0; count < 300; count++)
      hub.warn({ namespace: "main", reason: "x".repeat(8_000), count }, "heartbeat_failed");
    const { until } = await read("?recent=yes");
    await until('"count":299');
  });

  test("has each event made a text once, however many streams begin", async () => {
    let madeCount = 0;
    const counted = { toJSON: () => `made ${++madeCount} times` };
    hub.warn({ namespace: "main", counted }, "jump");
    for (let count = 0; count < 3; count++) await (await read("?recent=yes")).until("made 1 times");
    hub.warn({ namespace: "main", counted }, "active");
    await (await read("?recent=yes")).until("made 2 times");
    expect(madeCount).toBe(2);
  });

  test("cuts off a reader that does not read: what waits for it stays bounded, and the others hear all", async () => {
    const events = new RecentEvents();
    const streams = new EventStreams(events);
    const responses: ServerResponse[] = [];
    const plain = createPlainServer((_request, response) => {
      response.writeHead(200);
      streams.begin(response, {
        client: "10.0.0.1",
        namespace: undefined,
        principal: UNRESTRICTED,
        isStillValid: () => true,
        lastEventId: undefined,
        wantsRecent: false,
      });
      responses.push(response);
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void plain.close());
    await once(plain, "listening");
    const { port } = plain.address() as AddressInfo;
    const slow = connect(port, "127.0.0.1");
    slow.on("error", () => {}).write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    while (responses.length < 1) await delay(1);
    const quick = request({ port, host: "127.0.0.1" }).end();
    onTestFinished(() => void quick.destroy());
    const [reading] = (await once(quick, "response")) as [IncomingMessage];
    let quickBytes = 0;
    reading.on("data", (chunk: Buffer) => {
      quickBytes += chunk.length;
    });
    const untilQuickHas = async (bytes: number) => {
      for (;;) {
        if (quickBytes >= bytes) return;
        await delay(1);
      }
    };
    const [response] = responses as [ServerResponse];
    let waitingBytesMax = 0;
    let toldBytes = 0;
    const text = "x".repeat(64 * 1024);
    while (!response.destroyed) {
      events.take({ level: "warn", event: "jump", fields: { text } });
      toldBytes += text.length;
      waitingBytesMax = Math.max(waitingBytesMax, response.writableLength);
      await untilQuickHas(toldBytes);
    }
    expect(waitingBytesMax).toBeGreaterThan(1024 * 1024);
    expect(waitingBytesMax).toBeLessThan(1.2 * 1024 * 1024);
    expect(responses[1]?.destroyed).toBe(false);
    slow.destroy();
    streams.close();
  });

  test(`refuses one address more than ${STREAM_COUNT_MAX / 2} at once, takes one again when one has left, and others meanwhile`, async () => {
    const readings: Reading[] = [];
    for (let count = 0; count < STREAM_COUNT_MAX / 2; count++) readings.push(await read());
    const refused = await fetch(`${base}/v1/events`);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ code: "too_many_streams" });
    expect((await read("", {}, "127.0.0.2")).response.statusCode).toBe(200);
    readings[0]?.response.destroy();
    for (;;) {
      const again = await read();
      if (again.response.statusCode === 200) break;
      await delay(5);
    }
  });

  test("says nothing in a comment now and then, so that no proxy takes silence for the end", async () => {
    const intervals = vi.spyOn(globalThis, "setInterval");
    onTestFinished(() => intervals.mockRestore());
    const reading = await read();
    await reading.until("retry: 2000");
    const [beat, everyMs] = intervals.mock.calls.at(-1) as [() => void, number];
    expect(everyMs).toBe(15_000);
    beat();
    await reading.until("\n:\n\n");
  });

  test("refuses a query that it does not know", async () => {
    expect((await fetch(`${base}/v1/events?namespace=UPPER`)).status).toBe(400);
    expect((await fetch(`${base}/v1/events?since=1`)).status).toBe(400);
  });
});
