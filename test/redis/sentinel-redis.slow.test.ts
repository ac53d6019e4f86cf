import { Redis } from "ioredis";
import { beforeEach, describe, expect, it } from "vitest";
import { command, info, until, untilInfo } from "./redis-command.js";
import { startSentinelRedis } from "./sentinel-redis.js";
import { TESTER_LOGIN } from "./shipped-users.js";
import { ownServerUnavailable, type RedisServer } from "./test-redis.js";

describe("a master watched by Sentinels", () => {
  beforeEach((context) => {
    const reason = ownServerUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("is replaced when it is killed, and comes back as a replica of the new one", async () => {
    const { master, sentinelHosts, masterName, waitForMaster, sentinels, nodes, end } = await startSentinelRedis();
    for (const sentinel of sentinels) {
      expect(await command(sentinel, "SENTINEL", "CKQUORUM", masterName)).toContain("3 usable Sentinels");
    }
    expect(await waitForMaster()).toBe(master);
    expect(await masterFoundBySentinels(sentinelHosts, masterName)).toBe(master.port);

    await master.kill("SIGKILL");
    const promoted = await waitForMaster(master);
    expect(nodes.slice(1)).toContain(promoted);
    expect((await info(promoted)).role).toBe("master");
    expect(await masterFoundBySentinels(sentinelHosts, masterName)).not.toBe(master.port);

    await master.start();
    await untilInfo(master, { role: "slave", master_link_status: "up" });

    await end();
    for (const server of [...nodes, ...sentinels]) {
      await expect(command(server, "PING")).rejects.toThrow(/ECONNREFUSED/);
    }
  });

  it("is replaced while it is frozen, and is a second master for a while when it thaws", async () => {
    const { master, waitForMaster } = await startSentinelRedis();
    await master.kill("SIGSTOP");
    await waitForMaster(master);
    // Asked while it is still frozen, so that it answers before a Sentinel can come to it.
    const uponThaw = info(master);
    await master.kill("SIGCONT");
    expect((await uponThaw).role).toBe("master");
    await untilInfo(master, { role: "slave", master_link_status: "up" });
  });

  it("is replaced by a majority only: one Sentinel of three does nothing until another one is back", async () => {
    const { master, nodes, sentinels, masterName, waitForMaster } = await startSentinelRedis();
    const [last, back, gone] = sentinels as [RedisServer, RedisServer, RedisServer];
    await Promise.all([master, back, gone].map((server) => server.kill("SIGKILL")));
    await until(
      "the last Sentinel has seen the master's end and that it is alone",
      () => command(last, "SENTINEL", "CKQUORUM", masterName).catch((error: Error) => error.message),
      (answer) => /NOQUORUM 1 usable/.test(String(answer)),
    );
    // Sentinel and master are missed one after the other.
    await until(
      "the last Sentinel misses the master",
      async () => (await info(last)).master0,
      (master0) => master0?.includes("status=sdown") === true,
    );
    for (const node of nodes.slice(1)) expect((await info(node)).role).toBe("slave");

    await back.start();
    expect(nodes.slice(1)).toContain(await waitForMaster(master, [last, back]));
  });
});

async function masterFoundBySentinels(hosts: string, name: string): Promise<number> {
  const sentinels = hosts.split(",").map((address) => {
    const [host, port] = address.split(":");
    return { host: host as string, port: Number(port) };
  });
  const redis = new Redis({ sentinels, name, ...TESTER_LOGIN });
  try {
    const text = await redis.info("server");
    return Number(/^tcp_port:(\d+)/m.exec(text)?.[1]);
  } finally {
    redis.disconnect();
  }
}
