import { once } from "node:events";
import { connect } from "node:net";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startFaultyProxy } from "./faulty-proxy.js";
import { command, until } from "./redis-command.js";
import { type RespValue, readMessage, writeCommand } from "./resp.js";
import { ownServerUnavailable, startRedisServer } from "./test-redis.js";

const SCRIPT = "return redis.call('INCR', KEYS[1])";

describe("a faulty proxy", () => {
  beforeEach((context) => {
    const reason = ownServerUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("lets everything through as long as nothing is ordered, in both protocols", async () => {
    const { port, counter } = await proxied();
    for (const protocol of [2, 3] as const) {
      const redis = new Redis(port, "127.0.0.1", { protocol });
      onTestFinished(() => redis.disconnect());
      await redis.hset(`${counter}:hash`, { a: "1", b: "2" });
      expect(await redis.hgetall(`${counter}:hash`)).toEqual({ a: "1", b: "2" });
      const long = "é".repeat(200_000);
      await redis.set(counter, long);
      expect(await redis.get(counter)).toBe(long);
      expect(await redis.get(`${counter}:none`)).toBeNull();
      await expect(redis.call("NONSENSE")).rejects.toThrow(/unknown command/);
      const answers = await redis.multi().del(counter).incr(counter).get(`${counter}:none`).exec();
      expect(answers?.map(([, value]) => value)).toEqual([1, 1, null]);
    }
  });

  it("puts another answer in the place of one, and the command runs once", async () => {
    const { proxy, client, counter, direct } = await proxied();
    const { struck } = proxy.strikeNext((answer) => answer.replace("1", "7"), /^EVAL/);
    client.send(["EVAL", SCRIPT, 1, counter], ["ECHO", "next"], ["EVAL", SCRIPT, 1, counter]);
    expect(await struck).toBe(`EVAL ${SCRIPT} 1 ${counter}`);
    expect(await client.answers(3), "once only").toEqual([7, "next", 2]);
    expect(await command(direct, "GET", counter)).toBe("2");
  });

  it("holds an answer and those behind it until it is released, while other connections go on", async () => {
    const { proxy, client, counter, direct, port } = await proxied();
    const first = proxy.strikeNext("hold");
    const third = proxy.strikeNext("hold", /third/);
    client.send(["INCR", counter], ["ECHO", "second"], ["ECHO", "third"], ["ECHO", "fourth"]);
    await Promise.all([first.struck, third.struck]);
    expect(await command({ url: `redis://127.0.0.1:${port}` }, "GET", counter)).toBe("1");
    expect(await command(direct, "GET", counter)).toBe("1");
    expect(client.received()).toEqual([]);
    first.release();
    expect(await client.answers(2)).toEqual([1, "second"]);
    third.release();
    expect(await client.answers(4)).toEqual([1, "second", "third", "fourth"]);
  });

  it("cuts the connection after the script ran, and its answer never comes", async () => {
    const { proxy, client, counter, direct } = await proxied();
    const { struck } = proxy.strikeNext("cut", /^EVAL/);
    client.send(["ECHO", "first"], ["EVAL", SCRIPT, 1, counter], ["ECHO", "third"]);
    await struck;
    await client.ended;
    expect(client.received()).toEqual(["first"]);
    expect(await command(direct, "GET", counter)).toBe("1");
  });

  it("gives orders to commands of any connection, the first order first, and forgets them when it is healed", async () => {
    const { proxy, client, counter, port } = await proxied();
    proxy.strikeNext(() => ":7\r\n", /^INCR/);
    proxy.strikeNext(() => ":8\r\n", /^INCR/);
    proxy.strikeNext("cut", /^ECHO/);
    client.send(["INCR", counter], ["INCR", counter], ["INCR", counter]);
    expect(await client.answers(3)).toEqual([7, 8, 3]);
    proxy.heal();
    await client.ended;
    expect(await command({ url: `redis://127.0.0.1:${port}` }, "ECHO", "healed")).toBe("healed");
  });

  it("swallows all answers from a moment on, while commands arrive, until it is healed", async () => {
    const { proxy, client, counter, direct } = await proxied();
    client.send(["INCR", counter]);
    await client.answers(1);
    proxy.swallowAnswers();
    client.send(["INCR", counter]);
    await until(
      "the command has arrived",
      () => command(direct, "GET", counter),
      (mark) => mark === "2",
    );
    proxy.heal();
    await client.ended;
    expect(client.received()).toEqual([1]);
  });
});

async function proxied() {
  const direct = await startRedisServer({
    openBecause: "each answer is counted, and one to a log-in would be one more",
  });
  const proxy = await startFaultyProxy(direct);
  onTestFinished(() => proxy.close());
  return { proxy, port: proxy.port, client: rawClient(proxy.port), counter: "mark", direct };
}

/** A client that takes answers as they come and asks not which command they belong to. */
function rawClient(port: number) {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let bytes = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => (bytes = Buffer.concat([bytes, chunk])));
  const received = () => {
    const values: RespValue[] = [];
    for (let message = readMessage(bytes); message; message = readMessage(bytes, message.end))
      values.push(message.value);
    return values;
  };
  return {
    ended: once(socket, "close"),
    send: (...commands: (string | number)[][]) => void socket.write(commands.map(writeCommand).join("")),
    received,
    answers: (count: number) =>
      until(
        `${count} answers`,
        async () => received(),
        ({ length }) => length >= count,
      ),
  };
}
