/** What ends a connection that is used for too long, or not at all: with the real limits, over real sockets. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { createServer } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory-store.js";

/** As in strict-server.ts. */
const REQUESTS_PER_CONNECTION_MAX = 100_000;
const KEEP_ALIVE_MS = 72_000;
/** As many as may wait on a connection. */
const AT_ONCE = 16;
const PATIENCE_MS = 600_000;

/** Of somebody who was let in: answers to strangers have a pace. */
const QUESTION = "GET /v1/namespaces/main/status HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";

/** Of a server of the test's own: both take their time, side by side. */
async function opened(onFinished: (end: () => Promise<void>) => void): Promise<Socket> {
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
  await coordinator.initNamespace("main");
  const server = await createServer({ coordinator, release: "0" });
  onFinished(() => server.stop());
  const { port } = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
  const socket = connect({ port: Number(port), host: "127.0.0.1" });
  await once(socket, "connect");
  return socket.setEncoding("latin1");
}

describe.concurrent("a connection", { timeout: PATIENCE_MS }, () => {
  test("is good for so many requests, and the last one is told: nothing behind it is answered", async (context) => {
    const socket = await opened(context.onTestFinished);
    let [asked, answered, closings] = [0, 0, 0];
    const ask = () => {
      socket.write(QUESTION.repeat(AT_ONCE));
      asked += AT_ONCE;
    };
    socket.on("data", (part: string) => {
      answered += part.match(/HTTP\/1\.1 200/g)?.length ?? 0;
      closings += part.match(/connection: close/gi)?.length ?? 0;
      if (answered === asked) ask();
    });
    const closed = once(socket, "close");
    ask();
    await closed;
    context.expect(answered).toBe(REQUESTS_PER_CONNECTION_MAX);
    context.expect(closings).toBe(1);
  });

  test("is closed when it was idle for so long, and not before", async (context) => {
    const socket = await opened(context.onTestFinished);
    socket.write(QUESTION);
    await once(socket, "data");
    const idleSinceMs = performance.now();
    await once(socket.resume(), "close");
    context.expect(performance.now() - idleSinceMs).toBeGreaterThan(KEEP_ALIVE_MS - 2_000);
  });
});
