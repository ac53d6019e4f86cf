import { beforeEach, describe, expect, it } from "vitest";
import { command, commands, info, until, untilInfo } from "./redis-command.js";
import { RespRefusal, readMessage, writeCommand } from "./resp.js";
import { ownServerUnavailable, startRedisServer } from "./test-redis.js";

describe("one command to a server", () => {
  beforeEach((context) => {
    const reason = ownServerUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("brings its answer in kind: text, number, nothing, lists in lists", async () => {
    const server = await startRedisServer();
    expect(await command(server, "SET", "mark", "é\r\n41")).toBe("OK");
    expect(await command(server, "GET", "mark")).toBe("é\r\n41");
    expect(await command(server, "GET", "none")).toBeNull();
    expect(await command(server, "INCRBY", "count", -7)).toBe(-7);
    expect(await command(server, "EVAL", "return {1, {'two', false}, {}}", 0)).toEqual([1, ["two", null], []]);
    expect((await info(server)).tcp_port).toBe(`${server.port}`);
  });

  it("throws Redis's own words when it is refused, also among others, whose work is done", async () => {
    const server = await startRedisServer();
    await expect(command(server, "NONSENSE")).rejects.toThrow(RespRefusal);
    await expect(commands(server, ["INCR", "mark"], ["INCR", "mark", "twice"], ["INCR", "mark"])).rejects.toThrow(
      "ERR wrong number of arguments for 'incr' command",
    );
    expect(await command(server, "GET", "mark")).toBe("2");
  });

  it("logs in where the url bears a password, and is told so where that is wrong", async () => {
    const openBecause = "a log-in as the default user is what is tried";
    const { host, port, url } = await startRedisServer({ config: { requirepass: '"two words"' }, openBecause });
    await expect(command({ url }, "PING")).rejects.toThrow(/NOAUTH/);
    expect(await command({ url: `redis://:two%20words@${host}:${port}` }, "PING")).toBe("PONG");
    await expect(command({ url: `redis://:other@${host}:${port}` }, "PING")).rejects.toThrow(/WRONGPASS/);
  });

  it("fails when the server dies before it answers, and where there is none", async () => {
    const server = await startRedisServer();
    const answer = expect(command(server, "BLPOP", "none", 0)).rejects.toThrow(/closed the connection|ECONNRESET/);
    await untilInfo(server, { blocked_clients: "1" });
    await server.kill("SIGKILL");
    await answer;
    await expect(command(server, "PING")).rejects.toThrow(/ECONNREFUSED/);
  });

  it("is asked again until the answer is the wanted one, while the server is away too", async () => {
    const server = await startRedisServer({ config: { appendonly: "yes", appendfsync: "always" } });
    await command(server, "SET", "mark", 1);
    await server.kill("SIGKILL");
    const waiting = until(
      "the mark is 3",
      () => command(server, "INCR", "mark"),
      (mark) => mark === 3,
    );
    await server.start();
    expect(await waiting).toBe(3);
  });
});

describe("a message of Redis", () => {
  // One of each type, in both protocols, with what it means.
  const MESSAGES: readonly (readonly [text: string, value: unknown])[] = [
    ["+OK\r\n", "OK"],
    ["-ERR no\r\n", new RespRefusal("ERR no")],
    [":-12\r\n", -12],
    ["$-1\r\n", null],
    ["*-1\r\n", null],
    ["$4\r\n\r\n\r\n\r\n", "\r\n\r\n"],
    ["*2\r\n:1\r\n*1\r\n$3\r\né!\r\n", [1, ["é!"]]],
    ["_\r\n", null],
    ["#t\r\n", true],
    ["#f\r\n", false],
    [",1.5\r\n", 1.5],
    ["(123456789012345678901234567890\r\n", "123456789012345678901234567890"],
    ["=7\r\ntxt:abc\r\n", "txt:abc"],
    ["!6\r\nERR no\r\n", new RespRefusal("ERR no")],
    ["%1\r\n+a\r\n:1\r\n", ["a", 1]],
    ["~1\r\n+a\r\n", ["a"]],
    [">1\r\n+push\r\n", ["push"]],
    [writeCommand(["SET", "é", 1]), ["SET", "é", "1"]],
  ];

  it("ends where it ends, whatever follows, and has no end before all of it is there", () => {
    for (const [text, value] of MESSAGES) {
      const bytes = Buffer.from(`+x\r\n${text}+y\r\n`);
      const end = bytes.length - "+y\r\n".length;
      expect(readMessage(bytes, 4), text).toEqual({ type: text[0], value, end });
      for (let length = 4; length < end; length++) expect(readMessage(bytes.subarray(0, length), 4)).toBeUndefined();
    }
  });

  it("is refused when no type of Redis begins so", () => {
    expect(() => readMessage(Buffer.from("PING\r\n"))).toThrow('no message of Redis begins with "P"');
  });
});
