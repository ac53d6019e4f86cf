/** What ends a connection that is used for too long, or not at all: with the real limits, over real sockets. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { createServer } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory.js";
import { commandsFor } from "./commands-for-test.js";
import { stepOn } from "./steps-for-test.js";

/** As in node-servers.ts. */
const REQUESTS_PER_CONNECTION_MAX = 10_000;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
const KEEP_ALIVE_MS = 72_000;
const UNKNOWN_KEEP_ALIVE_MS = 5_000;
/** A reader that takes nothing for the short time is kept, and for the long time is cut off. */
const IDLE_MS = { shortMs: 25_000, longMs: 65_000 };
const TEST_TIMEOUT_MS = 600_000;

/** Some 30 MB of export: far more than sockets hold for a reader who does not read. */
const LEASE_COUNT = 45_000;
const LABELS = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`label-${index}`, "x".repeat(64)]));
const EXPORT = "GET /v1/namespaces/main/export HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
/** The last chunk of a complete response. */
const END_OF_CHUNKS = "\r\n0\r\n\r\n";

/** A lease whose body has only begun. */
const BODY_TO_COME =
  "POST /v1/namespaces/main/leases HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
const HEALTH = "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
const STATUS = "GET /v1/namespaces/main/status HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";

/** To a server of the test's own: the tests wait at the same time. */
async function opened(onFinished: (end: () => Promise<void>) => void, leaseCount = 0): Promise<Socket> {
  const store = new MemoryStore();
  const coordinator = new Coordinator({ store, name: "c" });
  const { storeId } = await coordinator.initNamespace("main");
  const holder = { name: "importer", host: "mail-1", pid: 1, labels: LABELS };
  const { lease } = commandsFor(storeId);
  for (let run = 1; run <= leaseCount; run++) await stepOn(store, "main", lease({ holder }));
  const server = createServer({ coordinator, release: "0" });
  onFinished(() => server.stop());
  const { port } = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
  const socket = connect({ port: Number(port), host: "127.0.0.1" });
  await once(socket, "connect");
  return socket.setEncoding("latin1");
}

describe.concurrent("a connection", { timeout: TEST_TIMEOUT_MS }, () => {
  test("a connection closes after so many requests", async (context) => {
    const socket = await opened(context.onTestFinished);
    let [sentCount, responseCount] = [0, 0];
    const send = () => {
      socket.write(HEALTH);
      sentCount++;
    };
    socket.on("data", (part: string) => {
      responseCount += part.match(/HTTP\/1\.1 200/g)?.length ?? 0;
      if (responseCount === sentCount) send();
    });
    const closed = once(socket, "close");
    send();
    await closed;
    context.expect(responseCount).toBe(REQUESTS_PER_CONNECTION_MAX);
  });

  test.for([
    { what: "headers", begun: HEALTH.slice(0, -4), timeoutMs: HEADERS_TIMEOUT_MS },
    { what: "a body", begun: BODY_TO_COME, timeoutMs: REQUEST_TIMEOUT_MS },
  ])(
    "a connection on which $what do not arrive whole gets 408 in time, and is closed",
    async ({ begun, timeoutMs }, context) => {
      const socket = await opened(context.onTestFinished);
      const sentMs = performance.now();
      // The rest would come too late.
      socket.write(begun);
      const [response] = await once(socket, "data");
      context.expect(response).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timed_out"/);
      context.expect(performance.now() - sentMs).toBeGreaterThan(timeoutMs - 1_000);
      await once(socket.resume(), "close");
    },
  );

  test.for([
    { what: "that was granted access", request: STATUS, keepAliveMs: KEEP_ALIVE_MS },
    { what: "with public requests alone", request: HEALTH, keepAliveMs: UNKNOWN_KEEP_ALIVE_MS },
  ])("a connection $what is closed when it was idle for so long, and not before", async (own, context) => {
    const socket = await opened(context.onTestFinished);
    socket.write(own.request);
    await once(socket, "data");
    const idleSinceMs = performance.now();
    await once(socket.resume(), "close");
    context.expect(performance.now() - idleSinceMs).toBeGreaterThan(own.keepAliveMs - 2_000);
    // Not as long as the other one: Node checks twice.
    context.expect(performance.now() - idleSinceMs).toBeLessThan(own.keepAliveMs * 3);
  });

  test.for([
    { idleMs: IDLE_MS.shortMs, isWhole: true },
    { idleMs: IDLE_MS.longMs, isWhole: false },
  ])(
    "a connection whose reader takes nothing of a response for $idleMs ms gets the whole: $isWhole",
    async ({ idleMs, isWhole }, context) => {
      const socket = await opened(context.onTestFinished, LEASE_COUNT);
      socket.write(EXPORT);
      await once(socket, "readable");
      await delay(idleMs);
      let last = "";
      socket.on("data", (part: string) => {
        last = (last + part).slice(-END_OF_CHUNKS.length);
      });
      // A response that is cut has no end.
      socket.on("error", () => {});
      await new Promise((resolve) => socket.once("close", resolve));
      context.expect(last === END_OF_CHUNKS).toBe(isWhole);
    },
  );
});
