/**
 * Hosts on a network of their own, inside this machine, that can be cut from each other: packets vanish and nobody is told.
 * Made of Linux's namespaces, without root where those are open to all. Knows Redis only as one more program to run on a host.
 */
import type { ChildProcess, SpawnOptions } from "node:child_process";
import { afterAll } from "vitest";
import { NetworkNamespace, namespacesUnavailable } from "./network-namespace.js";
import type { LaunchNode } from "./replicated-redis.js";
import { startRedisServer } from "./test-redis.js";

/** Each network has these addresses to itself, whatever else uses them. */
const SUBNET = "10.91.0";
const HOST_COUNT_MAX = 200;
const BRIDGE = "hub";
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;

export interface NetworkHost {
  readonly address: string;
  /** Starts a program on this host. It sees the files of this machine, and of its networks only this one. Ends with the network. */
  spawn(program: string, words: readonly string[], options?: SpawnOptions): ChildProcess;
}

export interface Network {
  readonly hosts: readonly NetworkHost[];
  /**
   * For `launch` of a topology: runs each node on the host of its index, at the host's address, on the ports that everyone
   * uses. From outside `command` reaches it, cut off or not; clients of its address must run on a host.
   */
  readonly launch: LaunchNode;
  /** From now on no packet passes between this host and any other. Within the host all goes on. */
  cut(index: number): Promise<void>;
  /** Packets pass again. Connections that nobody gave up meanwhile go on, once their sender tries again. */
  heal(index: number): Promise<void>;
  /** Kills what `spawn` started, and takes the network away. Without it that happens at the end of the test file. */
  end(): Promise<void>;
}

/** Why `startNetwork` cannot work here, for `ctx.skip(reason)`; undefined when it can. */
export function partitionUnavailable(): string | undefined {
  const reason = namespacesUnavailable();
  return reason === undefined ? undefined : `no network can be partitioned: ${reason}`;
}

/**
 * Resolves when all hosts are linked.
 * @param hostCount 1 to 200.
 * @throws Error when `partitionUnavailable()` gives a reason.
 */
export async function startNetwork(hostCount: number): Promise<Network> {
  if (hostCount < 1 || hostCount > HOST_COUNT_MAX) throw new RangeError(`${hostCount} hosts: 1 to ${HOST_COUNT_MAX}`);
  const hub = await NetworkNamespace.create();
  hubs.push(hub);
  await hub.ip("link", "add", BRIDGE, "type", "bridge");
  await hub.ip("link", "set", BRIDGE, "up");
  const namespaces: NetworkNamespace[] = [];
  for (let index = 0; index < hostCount; index++) namespaces.push(await linkedHost(hub, index));

  return {
    hosts: namespaces.map((host, index) => ({
      address: addressOf(index),
      spawn: (program, words, options) => host.spawn(program, words, options),
    })),
    launch: (options, index) => {
      const { runIn } = namespaces[index] as NetworkNamespace;
      const port = options.sentinel ? SENTINEL_PORT : REDIS_PORT;
      return startRedisServer({ ...options, host: addressOf(index), port, runIn });
    },
    // Taken off the bridge and not switched off: a link that is down would be seen by the host, and its connections would hear of it.
    cut: (index) => hub.ip("link", "set", linkOf(index), "nomaster"),
    heal: (index) => hub.ip("link", "set", linkOf(index), "master", BRIDGE),
    end: () => hub.end(),
  };
}

const hubs: NetworkNamespace[] = [];
afterAll(async () => {
  for (const hub of hubs.splice(0)) await hub.end();
});

async function linkedHost(hub: NetworkNamespace, index: number): Promise<NetworkNamespace> {
  const host = await hub.another();
  await hub.ip("link", "add", linkOf(index), "type", "veth", "peer", "name", "eth0", "netns", `${host.pid}`);
  await host.ip("link", "set", "lo", "up");
  await host.ip("address", "add", `${addressOf(index)}/24`, "dev", "eth0");
  await host.ip("link", "set", "eth0", "up");
  await hub.ip("link", "set", linkOf(index), "master", BRIDGE, "up");
  return host;
}

function addressOf(index: number): string {
  return `${SUBNET}.${index + 1}`;
}

function linkOf(index: number): string {
  return `host${index}`;
}
