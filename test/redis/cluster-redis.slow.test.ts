import { Cluster } from "ioredis";
import { beforeEach, describe, expect, it } from "vitest";
import { type ClusterRedis, startClusterRedis } from "./cluster-redis.js";
import { command, info, until, untilInfo } from "./redis-command.js";
import { TESTER_LOGIN } from "./shipped-users.js";
import { ownServerUnavailable, type RedisServer } from "./test-redis.js";

const KEY = "{archive}:main";

describe("a cluster of three masters with a replica each", () => {
  beforeEach((context) => {
    const reason = ownServerUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("is whole: each slot has a master, each master a replica, and a client finds its way", async () => {
    const cluster = await startClusterRedis();
    const masters = await Promise.all([0, 5_461, 10_923, 16_383].map((slot) => cluster.masterOf(slot)));
    expect(new Set(masters).size).toBe(3);
    for (const master of masters) expect(await cluster.replicasOf(master)).toHaveLength(1);

    const owner = await cluster.masterOf(KEY);
    expect(await throughAnyNode(cluster, (client) => client.incr(KEY))).toBe(1);
    expect(await command(owner, "GET", KEY)).toBe("1");
    const stranger = masters.find((master) => master !== owner) as RedisServer;
    await expect(command(stranger, "GET", KEY)).rejects.toThrow(`MOVED`);

    const [replica] = (await cluster.replicasOf(owner)) as [RedisServer];
    await replica.kill("SIGKILL");
    await until(
      "it is missed",
      () => cluster.replicasOf(owner),
      ({ length }) => length === 0,
    );
    await cluster.end();
    await expect(command(owner, "PING")).rejects.toThrow(/ECONNREFUSED/);
  });

  it("hands a slot to the replica: by consent, by vote with the master dead, and by no one's leave", async () => {
    const cluster = await startClusterRedis();
    const first = await cluster.masterOf(KEY);
    const [second] = (await cluster.replicasOf(first)) as [RedisServer];
    await cluster.failover(second);
    await cluster.untilAgreed();
    expect(await cluster.masterOf(KEY)).toBe(second);
    expect((await info(first)).role).toBe("slave");

    await second.kill("SIGKILL");
    await expect(cluster.failover(first)).rejects.toThrow(/Master is down/i);
    await cluster.failover(first, "FORCE");
    const living = cluster.nodes.filter((node) => node !== second);
    await cluster.untilAgreed(living);
    expect(await cluster.masterOf(KEY, first)).toBe(first);
    expect(await cluster.replicasOf(first, first)).toEqual([]);

    await second.start();
    await cluster.untilAgreed();
    expect(await cluster.replicasOf(first, first)).toEqual([second]);

    const others = cluster.nodes.filter((node) => node !== first && node !== second);
    for (const node of others) await node.kill("SIGSTOP");
    await cluster.failover(second, "TAKEOVER");
    expect(await cluster.masterOf(KEY, second)).toBe(second);
    for (const node of others) await node.kill("SIGCONT");
    await cluster.untilAgreed();
    expect(await cluster.masterOf(KEY)).toBe(second);
  });

  it("replaces a dead master by itself", async () => {
    const cluster = await startClusterRedis();
    const master = await cluster.masterOf(KEY);
    const [replica] = (await cluster.replicasOf(master)) as [RedisServer];
    await master.kill("SIGKILL");
    await untilInfo(replica, { role: "master" });
    const living = cluster.nodes.filter((node) => node !== master);
    await cluster.untilAgreed(living);
    expect(await cluster.masterOf(KEY, replica)).toBe(replica);
  });
});

async function throughAnyNode<Result>(
  { nodes }: ClusterRedis,
  use: (client: Cluster) => Promise<Result>,
): Promise<Result> {
  const client = new Cluster(
    nodes.map(({ host, port }) => ({ host, port })),
    { redisOptions: TESTER_LOGIN },
  );
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}
