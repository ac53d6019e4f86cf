/** Under which hosts requests are answered where no token is required, and that a page under another name reads nothing. */
import { once } from "node:events";
import { type IncomingMessage, get as request } from "node:http";
import { describe, expect, test } from "vitest";
import { type HostNames, isAllowedHost } from "../src/http/browser-requests.js";
import { served } from "./served.js";

const LOOPBACK: HostNames = { addresses: "loopback", names: new Set() };
const ANY: HostNames = { addresses: "any", names: new Set() };
const NAMED: HostNames = { addresses: "loopback", names: new Set(["coordinator", "numbers.example"]) };

const OF_THIS_MACHINE = [
  "localhost",
  "LOCALHOST:7300",
  "127.0.0.1",
  "127.0.0.1:1",
  "127.9.8.7:65535",
  "[::1]",
  "[::1]:7300",
];
/** No page can have one as its name. */
const ADDRESSES = ["10.1.2.3", "10.1.2.3:7300", "0.0.0.0", "128.0.0.1", "[::2]:7300", "[::ffff:10.0.0.1]", "[fd00::5]"];
const NAMES = ["coordinator", "Coordinator:7300", "numbers.example:80"];
const FOREIGN =
  ",example.org,localhost.example.org,example.org:7300,127.0.0.1.example.org,xlocalhost,localhost.,127.1,127.0.0.256,::1,[127.0.0.1]," +
  "[localhost]:7300,localhost:80:90,localhost:x,localhost; example.org,user@localhost,[coordinator],[],[10.1.2.3]";

test.each([
  ...OF_THIS_MACHINE.map((host) => [host, [true, true, true]] as const),
  ...ADDRESSES.map((host) => [host, [false, true, false]] as const),
  ...NAMES.map((host) => [host, [false, false, true]] as const),
  ...[undefined, "localhost, example.org", ...FOREIGN.split(",")].map((host) => [host, [false, false, false]] as const),
])("the host %s is allowed with loopback, with any address, with names: %j", (host, expected) => {
  expect([LOOPBACK, ANY, NAMED].map((names) => isAllowedHost(host, names))).toEqual(expected);
});

describe("a coordinator that requires no token", () => {
  async function responseUnder(port: number, path: string, host: string) {
    const [response] = (await once(request({ host: "127.0.0.1", port, path, headers: { host } }), "response")) as [
      IncomingMessage,
    ];
    let body = "";
    for await (const chunk of response) body += chunk;
    return { status: response.statusCode, body };
  }

  test.each([LOOPBACK, ANY, NAMED])(
    "returns nothing to a page that gave its own name our address: %o",
    async (hostNames) => {
      const { port } = await served({ hostNames });
      const paths = ["/v1/namespaces", "/v1/events", "/metrics", "/healthz", "/openapi.json", "/console/", "/nothing"];
      for (const path of paths) {
        const { status, body } = await responseUnder(port, path, "evil.example:7300");
        expect([path, status]).toEqual([path, 403]);
        expect(JSON.parse(body)).toMatchObject({ code: "forbidden", message: expect.stringContaining("--allow-host") });
        expect(body).not.toContain("main");
      }
    },
  );

  test.each([
    [NAMED, "localhost:7300", 200],
    [NAMED, "[::1]:7300", 200],
    [NAMED, "coordinator:7300", 200],
    [undefined, "coordinator.example", 403],
    [undefined, "localhost", 200],
  ])("allows by %o the host %s: %i", async (hostNames, host, status) => {
    const { port } = await served({ hostNames });
    expect(await responseUnder(port, "/v1/namespaces", host)).toMatchObject({ status });
  });
});
