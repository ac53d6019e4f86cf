/** A server that says what nobody asked for: the connection ends, and never the process. Found by fuzzing, seed 306452520. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import process from "node:process";
import { expect, onTestFinished, test } from "vitest";
import { readMessage } from "../../../test/redis/resp.js";
import { RedisConnection } from "../src/stores/redis-connection.js";

const ANSWERS: Readonly<Record<string, (word: string | undefined) => string>> = {
  hello: () => "%1\r\n+proto\r\n:3\r\n",
  ping: (word) => (word === undefined ? "+PONG\r\n" : `$${word.length}\r\n${word}\r\n`),
};

/** Its newest connection, so that something may be said on it. */
async function speakingServer() {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    let rest: Buffer = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      for (let message = readMessage(rest); message; message = readMessage(rest)) {
        rest = rest.subarray(message.end);
        const [name = "", word] = message.value as readonly string[];
        socket.write(ANSWERS[name.toLowerCase()]?.(word) ?? "+OK\r\n");
      }
    });
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { port: (server.address() as AddressInfo).port, sockets };
}

test.each([
  ["a null", "_\r\n"],
  ["a null of the old protocol, twice", "$-1\r\n$-1\r\n"],
  ["a push that is null", ">2\r\n_\r\n_\r\n"],
  ["a subscription without a channel", ">3\r\n+subscribe\r\n_\r\n:1\r\n"],
])("%s ends the connection, and the next question has a new one", async (_what, unasked) => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => void uncaught.push(error);
  process.prependListener("uncaughtException", note);
  onTestFinished(() => void process.off("uncaughtException", note));
  const { port, sockets } = await speakingServer();
  const connection = await RedisConnection.open({ host: "127.0.0.1", port, tls: false, database: 0 });
  onTestFinished(() => connection.close());
  const ended = once(sockets[0] as Socket, "close");
  sockets[0]?.write(unasked);
  await ended;
  await expect.poll(() => connection.ask({ namespace: "" }, (redis) => redis.ping("new")).catch(String)).toBe("new");
  expect(sockets).toHaveLength(2);
  expect(uncaught).toEqual([]);
});
