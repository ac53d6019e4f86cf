/** Over real sockets: strangers who ask for more than anybody needs are all answered, and not read for a while behind it; others feel nothing. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { ErrorCode } from "@callnumber/protocol/wire";
import fastify, { type FastifyRequest } from "fastify";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { keepAnswerPace } from "../src/http/answer-pace.js";
import type { TypedApp } from "../src/http/app.js";
import { ANYBODY } from "../src/http/caller.js";
import { refusalsTold } from "../src/http/error-answer.js";
import { HeldBack } from "../src/http/held-back.js";
import { createServer, type Server } from "../src/http/server.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { TokensInHand } from "./tokens-in-hand.js";

/** As long at least as in held-back.ts. */
const HELD_BACK_MS = 500;
/** Far more than one may have at once, and in the seconds that it takes a busy machine to answer them. */
const CONNECTIONS = 1_200;

let server: Server;
let port: number;

beforeEach(async () => {
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
  await coordinator.initNamespace("main");
  server = await createServer({ coordinator, release: "0", door: new TokensInHand() });
  port = Number(new URL(await server.listen({ host: "127.0.0.1", port: 0 })).port);
});

afterEach(() => server.stop());

interface Asking {
  readonly socket: Socket;
  heard: string;
}

async function opened(localAddress: string): Promise<Asking> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  const asking: Asking = { socket, heard: "" };
  socket.on("error", () => {});
  socket.setEncoding("latin1").on("data", (part: string) => {
    asking.heard += part;
  });
  return asking;
}

const answerCount = ({ heard }: Asking) => heard.match(/HTTP\/1\.1 \d/g)?.length ?? 0;
const get = (path: string, header = "") => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${header}\r\n`;

/** Asks twice, the second time as soon as the first is answered. Resolves to how long after it the second answer came, ms. */
function askedTwice(asking: Asking, first: string, second: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let firstMs: number | undefined;
    asking.socket.once("close", () => reject(new Error(`closed behind ${JSON.stringify(asking.heard)}`)));
    asking.socket.on("data", () => {
      const count = answerCount(asking);
      if (count === 1 && firstMs === undefined) {
        firstMs = performance.now();
        asking.socket.write(second);
      }
      if (count === 2 && firstMs !== undefined) resolve(performance.now() - firstMs);
    });
    asking.socket.write(first);
  });
}

test.each([
  ["without a token", get("/v1/namespaces/main/status"), 401],
  ["with one that nobody knows", get("/metrics", `authorization: Bearer cn_${"x".repeat(43)}\r\n`), 401],
  ["for nothing", get("/nothing"), 404],
  ["for what everybody may ask", get("/healthz"), 200],
  ["with a header that proxies send", get("/nothing", "via: 1.1 proxy\r\n"), 404],
])("a flood that asks %s is answered, and then not read, while another address is", async (_, request, status) => {
  const flood = await Promise.all(Array.from({ length: CONNECTIONS }, () => opened("127.0.0.2")));
  const other = await opened("127.0.0.3");
  const askAgain = () => other.socket.write(get("/healthz"));
  other.socket.on("data", askAgain);
  askAgain();
  const pausesMs = await Promise.all(flood.map((one) => askedTwice(one, request, get("/healthz"))));
  for (const { heard } of flood) expect(heard).toMatch(new RegExp(`^HTTP/1.1 ${status}`));
  const heldCount = pausesMs.filter((pauseMs) => pauseMs > HELD_BACK_MS * 0.8).length;
  expect(heldCount).toBeGreaterThan(0);
  // It has no pause: nobody else has had its answers.
  expect(answerCount(other)).toBeGreaterThan(3);
});

test.each(["x-forwarded-for", "forwarded", "via"])(
  "%s spares a connection that somebody was let in on, and no other",
  (name) => {
    const spares = (isLetIn: boolean, headers: Readonly<Record<string, string>>) =>
      new HeldBack(() => isLetIn).isSpared({ headers } as unknown as FastifyRequest);
    expect(spares(true, { [name]: "a proxy" })).toBe(true);
    expect(spares(false, { [name]: "a proxy" })).toBe(false);
    expect(spares(true, {})).toBe(false);
  },
);

/** As in answer-pace.ts. */
const AT_ONCE = 256;

test.each<[code: ErrorCode, status: number, isPaced: boolean]>([
  ["rate_limited", 429, true],
  ["run_beyond_mark", 400, true],
  ["clocks_disagree", 503, true],
  ["too_many_streams", 503, true],
  ["line_reached", 503, false],
  ["store_unavailable", 503, false],
])("of refusals %s (%i) by one token those beyond its share are held back: %s", async (code, status, isPaced) => {
  const app = fastify();
  onTestFinished(() => app.close());
  const heldBy: (string | null)[] = [];
  const heldBack = {
    holdBehind: ({ caller }: FastifyRequest) => void heldBy.push(caller.tokenId),
  } as unknown as HeldBack;
  app.setErrorHandler(refusalsTold(SILENT_LOG).answerError);
  app.decorateRequest("caller", null as never);
  keepAnswerPace(app as unknown as TypedApp, heldBack, () => 0);
  app.get("/:tokenId", { config: { access: "lease" } }, (request) => {
    request.caller = { ...ANYBODY, tokenId: (request.params as { tokenId: string }).tokenId };
    throw new CoordinatorError(code, "no");
  });
  for (let count = 0; count < AT_ONCE + 3; count++) {
    expect((await app.inject("/one")).statusCode).toBe(status);
  }
  await app.inject("/another");
  expect(heldBy).toEqual(isPaced ? ["one", "one", "one"] : []);
});
