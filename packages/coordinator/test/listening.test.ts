/** Who starts a server without the command is kept from the same mistakes: strangers let in, and tokens read on the way. */
import { once } from "node:events";
import { get } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { createServer, type ServerOptions } from "../src/http/server.js";
import { MemoryStore } from "../src/stores/memory.js";
import { TokenAuthenticator } from "../src/tokens/token-auth.js";

const EVERYWHERE = { host: "0.0.0.0", port: 0 };
const WITH_TOKENS = { authenticator: new TokenAuthenticator([]) };

async function made(options: Partial<ServerOptions> = {}) {
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
  await coordinator.initNamespace("main");
  const server = await createServer({ coordinator, release: "0", ...options });
  onTestFinished(() => server.stop());
  return server;
}

describe("a server on an address that others reach", () => {
  test.each([
    ["without tokens and TLS", {}, "listenWithoutTokens"],
    ["without tokens", { listenWithoutTls: true }, "listenWithoutTokens"],
    ["without TLS", { listenWithoutTokens: true }, "listenWithoutTls"],
    ["with tokens, without TLS", WITH_TOKENS, "listenWithoutTls"],
    [
      "with tokens, without TLS, and a word for the other",
      { ...WITH_TOKENS, listenWithoutTokens: true },
      "listenWithoutTls",
    ],
  ])("%s does not listen unless it is told to", async (_, options, word) => {
    const server = await made(options);
    const refused = server.listen(EVERYWHERE);
    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.toThrow(`${word}: true`);
  });

  test.each([
    { listenWithoutTokens: true, listenWithoutTls: true },
    { ...WITH_TOKENS, listenWithoutTls: true },
  ])("listens when it is told to", async (options) => {
    const server = await made(options);
    await expect(server.listen(EVERYWHERE)).resolves.toMatch(/^http:/);
  });
});

describe("without tokens and another word", () => {
  test.each(["127.0.0.1", "localhost"])("%s is listened to, and requests must name this machine", async (host) => {
    const server = await made();
    const url = new URL(await server.listen({ host, port: 0 }));
    const statusUnder = async (name: string) => {
      const [{ statusCode }] = await once(get(`${url}healthz`, { headers: { host: name } }), "response");
      return statusCode as number;
    };
    expect(await statusUnder(`localhost:${url.port}`)).toBe(200);
    expect(await statusUnder("evil.example")).toBe(403);
  });
});
