/** Under which hosts requests are answered where nobody is asked for a token, and that a page under another name is told nothing. */
import { request } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { type HostNames, isAllowedHost } from "../src/http/browser-requests.js";
import { createServer, type Server } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory.js";

const OURS = ["localhost", "LOCALHOST:7300", "127.0.0.1", "127.0.0.1:1", "127.9.8.7:65535", "[::1]", "[::1]:7300"];
/** Of other machines: nobody's own name, and so no name of a page from elsewhere. */
const ADDRESSES = ["10.1.2.3", "10.1.2.3:7300", "0.0.0.0", "128.0.0.1", "[::2]:7300", "[::ffff:10.0.0.1]", "[fd00::5]"];
const FOREIGN = [
  "",
  "example.org",
  "localhost.example.org",
  "example.org:7300",
  "127.0.0.1.example.org",
  "xlocalhost",
  "localhost.",
  "127.1",
  "127.0.0.256",
  "::1",
  "[127.0.0.1]",
  "[localhost]:7300",
  "localhost:80:90",
  "localhost:x",
  "localhost, example.org",
  "user@localhost",
  "coordinator",
  "[coordinator]",
  "[]",
  "[10.1.2.3]",
];

const LOOPBACK: HostNames = { addresses: "loopback", names: new Set() };
const ANY: HostNames = { addresses: "any", names: new Set() };
const NAMED: HostNames = { addresses: "loopback", names: new Set(["coordinator", "numbers.example"]) };

describe("a host", () => {
  test.each(OURS)("%s is this machine: always answered under", (host) => {
    expect([LOOPBACK, ANY, NAMED].map((names) => isAllowedHost(host, names))).toEqual([true, true, true]);
  });
  test.each(ADDRESSES)("%s is an address: answered under where others are listened to", (host) => {
    expect([LOOPBACK, ANY, NAMED].map((names) => isAllowedHost(host, names))).toEqual([false, true, false]);
  });
  test.each([...FOREIGN.filter((host) => host !== "coordinator"), undefined])("%s is neither", (host) => {
    expect([LOOPBACK, ANY, NAMED].map((names) => isAllowedHost(host, names))).toEqual([false, false, false]);
  });
  test.each(["coordinator", "Coordinator:7300", "numbers.example:80"])(
    "%s is answered under where it is named",
    (host) => {
      expect([LOOPBACK, ANY, NAMED].map((names) => isAllowedHost(host, names))).toEqual([false, false, true]);
    },
  );
});

describe("a coordinator that asks nobody for a token", () => {
  let server: Server;
  afterEach(() => server.stop());

  async function served(hostNames?: HostNames) {
    const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
    await coordinator.initNamespace("main");
    server = await createServer({ coordinator, release: "0.0.0", hostNames });
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
      for (const hostNames of [LOOPBACK, ANY, NAMED]) {
        const ask = await served(hostNames);
        const { status, body } = await ask(path, "evil.example:7300");
        expect(status).toBe(403);
        expect(JSON.parse(body)).toMatchObject({ code: "forbidden", message: expect.stringContaining("--allow-host") });
        expect(body).not.toContain("main");
        await server.stop();
      }
    },
  );

  test("answers under its own names", async () => {
    const ask = await served(NAMED);
    expect(await ask("/v1/namespaces", "localhost:7300")).toMatchObject({ status: 200 });
    expect(await ask("/v1/namespaces", "[::1]:7300")).toMatchObject({ status: 200 });
    expect(await ask("/v1/namespaces", "coordinator:7300")).toMatchObject({ status: 200 });
  });

  test("answers under this machine's names where nothing else is said", async () => {
    const ask = await served();
    expect(await ask("/v1/namespaces", "coordinator.example")).toMatchObject({ status: 403 });
    expect(await ask("/v1/namespaces", "localhost")).toMatchObject({ status: 200 });
  });
});
