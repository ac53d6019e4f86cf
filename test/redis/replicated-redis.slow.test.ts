import { beforeEach, describe, expect, it } from "vitest";
import { command, commands, info } from "./redis-command.js";
import { detach, follow, promote, startReplicatedRedis, untilLinked } from "./replicated-redis.js";
import { ownServerUnavailable, type RedisServer } from "./test-redis.js";

/** Takes longer to copy than a command takes to be answered. */
const BULK_BYTES = 50_000_000;
const BULK = "redis.call('SET', KEYS[1], string.rep('x', ARGV[1]))";

describe("a master with replicas", () => {
  beforeEach((context) => {
    const reason = ownServerUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("is ready when every replica acknowledges a write", async () => {
    const { nodes, master, replicas } = await startReplicatedRedis({ nodeCount: 3 });
    expect(nodes).toEqual([master, ...replicas]);
    expect(await info(master)).toMatchObject({ role: "master", connected_slaves: "2" });
    for (const replica of replicas) expect(await info(replica)).toMatchObject({ master_link_status: "up" });
    expect(await commands(master, ["SET", "mark", 7], ["WAIT", 2, 0])).toEqual(["OK", 2]);
    for (const replica of replicas) expect(await command(replica, "GET", "mark")).toBe("7");
  });

  it("lags where a replica is detached, forgets with its promotion, and follows again", async () => {
    const { master, replicas } = await startReplicatedRedis({ nodeCount: 3 });
    const [lagging, fresh] = replicas as [RedisServer, RedisServer];
    expect(await commands(master, ["INCR", "mark"], ["WAIT", 2, 0])).toEqual([1, 2]);

    await detach(lagging);
    expect(await commands(master, ["INCR", "mark"], ["WAIT", 1, 0])).toEqual([2, 1]);
    expect(await command(fresh, "GET", "mark")).toBe("2");
    expect(await command(lagging, "GET", "mark")).toBe("1");

    const before = await info(lagging);
    await promote(lagging);
    const after = await info(lagging);
    expect(after.role).toBe("master");
    expect(after.master_replid).not.toBe(before.master_replid);
    expect(await command(lagging, "INCR", "mark"), "a plain counter repeats itself here").toBe(2);

    await follow(master, lagging);
    await follow(fresh, lagging);
    for (const node of [master, fresh]) expect(await command(node, "GET", "mark")).toBe("2");
    expect((await info(lagging)).connected_slaves).toBe("2");
  });

  it("gives a detached replica that follows its master again all that it missed", async () => {
    const { master, replicas } = await startReplicatedRedis({ nodeCount: 2, config: { rdbcompression: "no" } });
    const [replica] = replicas as [RedisServer];
    await detach(replica);
    await commands(master, ["EVAL", BULK, 1, "bulk", BULK_BYTES], ["SET", "mark", 9]);
    expect(await command(replica, "GET", "mark")).toBeNull();
    await follow(replica, master);
    expect(await commands(replica, ["STRLEN", "bulk"], ["GET", "mark"])).toEqual([BULK_BYTES, "9"]);
  });

  it("gives each node the role again that it had, after kill -9 and a new start", async () => {
    const { master, replicas } = await startReplicatedRedis({ nodeCount: 3 });
    const [promoted, other] = replicas as [RedisServer, RedisServer];
    await promote(promoted);
    await follow(other, promoted);
    for (const node of [master, promoted, other]) {
      await node.kill("SIGKILL");
      await node.start();
    }
    expect(await info(master)).toMatchObject({ role: "master" });
    expect(await info(promoted)).toMatchObject({ role: "master" });
    await untilLinked(other, promoted);
  });

  it("leaves no node that answers, frozen or killed before, when it is ended", async () => {
    const redis = await startReplicatedRedis({ nodeCount: 3 });
    await redis.master.kill("SIGSTOP");
    await redis.replicas[0]?.kill("SIGKILL");
    await redis.end();
    for (const node of redis.nodes) await expect(command(node, "PING")).rejects.toThrow(/ECONNREFUSED/);
  });
});
