/** Which names are this machine's, and that a page under another name is told nothing. */
import { request } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { isLoopbackHost } from "../src/http/loopback-host.js";
import { createServer, type Server } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory-store.js";

const OURS = ["localhost", "LOCALHOST:7300", "127.0.0.1", "127.0.0.1:1", "127.9.8.7:65535", "[::1]", "[::1]:7300"];
const FOREIGN = [
  "",
  "example.org",
  "localhost.example.org",
  "example.org:7300",
  "127.0.0.1.example.org",
  "xlocalhost",
  "localhost.",
  "128.0.0.1",
  "127.1",
  "127.0.0.256",
  "0.0.0.0",
  "::1",
  "[::2]:7300",
  "[127.0.0.1]",
  "[localhost]:7300",
  "[::ffff:10.0.0.1]",
  "localhost:80:90",
  "localhost:x",
  "localhost, example.org",
  "user@localhost",
];

describe("a host", () => {
  test.each(OURS)("%s is this machine", (host) => expect(isLoopbackHost(host)).toBe(true));
  test.each([...FOREIGN, undefined])("%s is not", (host) => expect(isLoopbackHost(host)).toBe(false));
});

describe("a coordinator for this machine only", () => {
  let server: Server;
  afterEach(() => server.stop());

  async function served(isForLoopbackOnly: boolean) {
    const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
    await coordinator.initNamespace("main");
    server = await createServer({ coordinator, release: "0.0.0", isForLoopbackOnly });
    const { port } = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
    return (path: string, host: string) =>
      new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
        const asking = request({ host: "127.0.0.1", port, path, headers: { host } }, (answer) => {
          let body = "";
          answer.on("data", (chunk: Buffer) => {
            body += chunk.toString();
          });
          answer.on("end", () => resolve({ status: answer.statusCode, body }));
        });
        asking.on("error", reject).end();
      });
  }

  test.each(["/v1/namespaces", "/v1/events", "/metrics", "/healthz", "/openapi.json", "/console/", "/nothing"])(
    "refuses to tell a page that gave its own name our address of %s",
    async (path) => {
      const ask = await served(true);
      const { status, body } = await ask(path, "evil.example:7300");
      expect(status).toBe(403);
      expect(JSON.parse(body)).toMatchObject({ code: "forbidden" });
      expect(body).not.toContain("main");
    },
  );

  test("answers under its own names", async () => {
    const ask = await served(true);
    expect(await ask("/v1/namespaces", "localhost:7300")).toMatchObject({ status: 200 });
    expect(await ask("/v1/namespaces", "[::1]:7300")).toMatchObject({ status: 200 });
  });

  test("is only so where it is asked for", async () => {
    const ask = await served(false);
    expect(await ask("/v1/namespaces", "coordinator.example")).toMatchObject({ status: 200 });
  });
});
