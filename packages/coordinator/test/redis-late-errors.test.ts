/** A connection to Redis that breaks twice: its second error finds a listener, or it would end the process. */
import { once } from "node:events";
import { createServer } from "node:net";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { bearLateErrors } from "../src/stores/redis-late-errors.js";

test("only the first error of a connection is told", async () => {
  bearLateErrors();
  const server = createServer((socket) => socket.on("error", () => {}).resume()).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const redis = new Redis({ host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => null });
  onTestFinished(() => redis.disconnect());
  const told: string[] = [];
  redis.on("error", ({ message }: Error) => void told.push(message));
  redis.connect().catch(() => {});
  await once(redis, "connect");
  const { stream } = redis as unknown as { readonly stream: NodeJS.EventEmitter };
  for (const words of ["the first", "the second", "the third"]) stream.emit("error", new Error(words));
  expect(told.filter((words) => words.startsWith("the "))).toEqual(["the first"]);
});
