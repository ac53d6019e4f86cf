import type { ChildProcess } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { type Network, partitionUnavailable, startNetwork } from "./network-partition.js";
import { command, commands, info, until, untilInfo } from "./redis-command.js";
import { startReplicatedRedis, untilCaughtUp } from "./replicated-redis.js";
import { startSentinelRedis } from "./sentinel-redis.js";
import { TESTER_LOGIN } from "./shipped-users.js";
import { ownServerUnavailable } from "./test-redis.js";

/** Says what it hears on its input to the server, and on its output what the server says. */
const RELAY = `
  const socket = require("node:net").connect({ host: process.argv[1], port: Number(process.argv[2]) });
  process.stdin.pipe(socket).pipe(process.stdout);
  socket.on("error", ({ code }) => process.stdout.write(code));
`;

describe("a network of hosts", () => {
  beforeEach((context) => {
    const reason = ownServerUnavailable() ?? partitionUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("keeps a connection silent while a host is cut off, and delivers what was said when it is healed", async () => {
    const network = await startNetwork(2);
    const server = await network.launch({}, 0);
    const near = relay(network, 0, server);
    const far = relay(network, 1, server);
    far.say("ECHO before\r\n");
    await far.hears("before");

    await network.cut(0);
    far.say("INCR mark\r\n");
    near.say("ECHO near\r\n");
    await near.hears("near");
    expect(await command(server, "GET", "mark"), "the command is on its way for ever").toBeNull();
    expect(far.heard()).not.toContain(":1");

    await network.heal(0);
    await far.hears(":1");
    expect(await command(server, "GET", "mark")).toBe("1");
    await network.end();
  });

  it("lets a master alone on its side take writes that nobody acknowledges, and the replica have them when it is healed", async () => {
    const network = await startNetwork(2);
    const { master, replicas } = await startReplicatedRedis({ nodeCount: 2, launch: network.launch });
    const [replica] = replicas as [(typeof replicas)[0]];
    expect(await commands(master, ["SET", "mark", 1], ["WAIT", 1, 0])).toEqual(["OK", 1]);

    await network.cut(1);
    expect(await commands(master, ["SET", "mark", 2], ["WAIT", 1, 200])).toEqual(["OK", 0]);
    expect(await command(replica, "GET", "mark")).toBe("1");

    await network.heal(1);
    await untilCaughtUp(replica, master);
    expect(await command(replica, "GET", "mark")).toBe("2");
  });

  it("has two masters while three hosts with Sentinels are parted, and one when they are healed", async () => {
    const network = await startNetwork(3);
    const redis = await startSentinelRedis({ launch: network.launch });
    const { master, nodes, sentinels } = redis;
    expect(redis.sentinelHosts).toBe("10.91.0.1:26379,10.91.0.2:26379,10.91.0.3:26379");

    await network.cut(0);
    const promoted = await redis.waitForMaster(master, sentinels.slice(1));
    expect(nodes.indexOf(promoted)).toBeGreaterThan(0);
    expect((await info(master)).role).toBe("master");
    expect(await command(master, "INCR", "mark")).toBe(1);
    expect(await command(promoted, "INCR", "mark"), "a plain counter repeats itself here").toBe(1);

    await network.heal(0);
    await untilInfo(master, { role: "slave", master_link_status: "up" });
    expect(nodes.slice(1)).toContain(await redis.waitForMaster());
  });

  it("leaves no process when it is ended, neither its own nor what was started on its hosts", async () => {
    const network = await startNetwork(2);
    const children = network.hosts.map((host) => host.spawn("sleep", ["3600"]));
    const home = readlinkSync("/proc/self/ns/net");
    const networkOf = async ({ pid }: ChildProcess) => readlinkSync(`/proc/${pid}/ns/net`);
    const left = (one: string) => one !== home;
    const entered = children.map((child) => until("it is on its host", () => networkOf(child), left));
    const networks = new Set(await Promise.all(entered));
    expect(networks.size).toBe(2);

    await network.end();
    for (const { signalCode } of children) expect(signalCode).toBe("SIGKILL");
    expect([...networksSeen()].filter((seen) => networks.has(seen))).toEqual([]);
  });
});

function relay({ hosts }: Network, index: number, { host, port }: { host: string; port: number }) {
  const child = hosts[index]?.spawn(process.execPath, ["-e", RELAY, host, `${port}`]) as ChildProcess;
  let heard = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (heard += text));
  child.stdin?.write(`AUTH ${TESTER_LOGIN.username} ${TESTER_LOGIN.password}\r\n`);
  return {
    say: (text: string) => void child.stdin?.write(text),
    heard: () => heard,
    hears: (text: string) =>
      until(
        `host ${index} hears ${text}`,
        async () => heard,
        (all) => all.includes(text),
      ),
  };
}

/** Every network namespace that a process lives in, of those processes that can be looked at. */
function networksSeen(): Set<string> {
  const seen = new Set<string>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      seen.add(readlinkSync(`/proc/${pid}/ns/net`));
    } catch {
      // It has ended meanwhile, or it is another user's.
    }
  }
  return seen;
}
