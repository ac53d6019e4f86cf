/**
 * What a server without tokens or TLS does not expose: where it listens, under which hosts it responds, and that a page under another name
 * reads nothing.
 */
import { once } from "node:events";
import { type IncomingMessage, get as request } from "node:http";
import { describe, expect, test } from "vitest";
import { type HostNames, isAllowedHost } from "../src/http/browser-requests.js";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";
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

const WITH_TOKENS = { authenticator: new TokenAuthenticator([]) };

test.each([
  ["without tokens and TLS", {}, "listenWithoutTokens"],
  ["without tokens", { listenWithoutTls: true }, "listenWithoutTokens"],
  ["without TLS", { listenWithoutTokens: true }, "listenWithoutTls"],
  ["with tokens, without TLS", WITH_TOKENS, "listenWithoutTls"],
  ["with tokens, without TLS, and the other option", { ...WITH_TOKENS, listenWithoutTokens: true }, "listenWithoutTls"],
])("a server %s does not listen on an address that other machines reach", async (_, options, option) => {
  const listening = served({ host: "0.0.0.0", ...options });
  await expect(listening).rejects.toThrow(TypeError);
  await expect(listening).rejects.toThrow(`${option}: true`);
});

describe("a server", () => {
  const BY_NAME = { listenWithoutTokens: true, listenWithoutTls: true, allowedHosts: ["coordinator"] };

  async function responseUnder(port: number, path: string, host: string) {
    const [response] = (await once(request({ host: "127.0.0.1", port, path, headers: { host } }), "response")) as [
      IncomingMessage,
    ];
    let body = "";
    for await (const chunk of response) body += chunk;
    return { status: response.statusCode, body };
  }

  test.each([
    [{}, "localhost:7300", 200],
    [{}, "10.1.2.3", 403],
    [{}, "coordinator", 403],
    [{ allowedHosts: ["coordinator"] }, "coordinator:7300", 200],
    [{ allowedHosts: ["coordinator"] }, "10.1.2.3", 403],
    [{ ...BY_NAME, host: "0.0.0.0" }, "10.1.2.3", 200],
    [{ ...BY_NAME, host: "0.0.0.0" }, "coordinator", 200],
    [{ ...BY_NAME, host: "0.0.0.0" }, "coordinator.example", 403],
    [{ ...WITH_TOKENS, listenWithoutTls: true, host: "0.0.0.0" }, "coordinator.example", 401],
  ])("a server with %o responds under the host %s with %i", async (options, host, status) => {
    const { port } = await served(options);
    expect(await responseUnder(port, "/v1/namespaces", host)).toMatchObject({ status });
  });

  test("a server returns nothing to a page that gave its own name our address", async () => {
    const { port } = await served(BY_NAME);
    const paths = ["/v1/namespaces", "/v1/events", "/metrics", "/healthz", "/openapi.json", "/console/", "/nothing"];
    for (const path of paths) {
      const { status, body } = await responseUnder(port, path, "evil.example:7300");
      expect([path, status]).toEqual([path, 403]);
      expect(JSON.parse(body)).toMatchObject({ code: "forbidden", message: expect.stringContaining("--allow-host") });
      expect(body).not.toContain("main");
    }
  });
});
