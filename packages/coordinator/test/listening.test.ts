/** A server that is not started by the command is kept from the same mistakes: open access, and tokens that can be read on the way. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";
import { served } from "./served.js";

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

test.each([
  { listenWithoutTokens: true, listenWithoutTls: true },
  { ...WITH_TOKENS, listenWithoutTls: true },
])("a server listens on an address that other machines reach when its options allow that", async (options) => {
  expect((await served({ host: "0.0.0.0", ...options })).url).toMatch(/^http:/);
});

test.each(["127.0.0.1", "localhost"])(
  "a server without tokens on %s answers requests for this machine only",
  async (host) => {
    const { url, port } = await served({ host });
    const statusUnder = async (name: string) => {
      const [response] = (await once(get(`${url}/healthz`, { headers: { host: name } }), "response")) as [
        IncomingMessage,
      ];
      response.resume();
      return response.statusCode;
    };
    expect(await statusUnder(`localhost:${port}`)).toBe(200);
    expect(await statusUnder("evil.example")).toBe(403);
  },
);
