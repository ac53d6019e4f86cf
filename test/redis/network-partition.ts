/**
 * Hosts on a network of their own, inside this machine, that can be cut from each other: packets vanish without an error.
 * Made of Linux's namespaces, without root where those are open to all. Knows Redis only as one more program to run on a host.
 */
import { type ChildProcess, execFile, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { afterAll } from "vitest";
import { diesWithParent } from "../processes/server-process.js";
import type { LaunchNode } from "./replicated-redis.js";
import { startRedisServer } from "./test-redis.js";

/** Each network has these addresses to itself, whatever else uses them. */
const SUBNET = "10.91.0";
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
  /** Packets pass again. Connections that neither side gave up meanwhile go on, once their sender tries again. */
  heal(index: number): Promise<void>;
  /** Kills what `spawn` started, and takes the network away. Without it that happens at the end of the test file. */
  end(): Promise<void>;
}

/** Why `startNetwork` cannot work here, for `ctx.skip(reason)`; undefined when it can. */
export function partitionUnavailable(): string | undefined {
  const way = wayThatWorks();
  return typeof way === "string" ? `no network can be partitioned: ${way}` : undefined;
}

/** Words for `unshare` that make a network, and for `nsenter` that enter it. */
interface Way {
  readonly create: readonly string[];
  readonly enter: readonly string[];
}

/** With a user namespace every user may, where the system allows it; without one root may, also in many a container. */
const WAYS: readonly Way[] = [
  { create: ["--user", "--map-root-user", "--net"], enter: ["--user", "--net", "--preserve-credentials"] },
  { create: ["--net"], enter: ["--net"] },
];
const PROGRAMS = ["unshare", "nsenter", "ip"];
const PROBE = "ip link add hub type bridge && ip link add end type veth peer name far && ip link set end master hub";

const networks: Network[] = [];
afterAll(async () => {
  for (const network of networks.splice(0)) await network.end();
});

/**
 * Resolves when all hosts are linked.
 * @throws Error when `partitionUnavailable()` gives a reason.
 */
export async function startNetwork(hostCount: number): Promise<Network> {
  const way = wayThatWorks();
  if (typeof way === "string") throw new Error(way);
  const children = new Set<ChildProcess>();
  /** Makes a network of its own, from within the one of `runIn`. */
  const namespace = async (runIn: readonly string[], unshare: readonly string[]): Promise<Namespace> => {
    const pid = await holdOpen([...runIn, "unshare", ...unshare], children);
    return { pid, runIn: ["nsenter", "--target", `${pid}`, ...way.enter] };
  };
  const hub = await namespace([], way.create);
  await ip(hub, "link", "add", BRIDGE, "type", "bridge");
  await ip(hub, "link", "set", BRIDGE, "up");
  const hosts: Namespace[] = [];
  for (let index = 0; index < hostCount; index++) {
    const host = await namespace(hub.runIn, ["--net"]);
    await ip(hub, "link", "add", linkOf(index), "type", "veth", "peer", "name", "eth0", "netns", `${host.pid}`);
    await ip(host, "link", "set", "lo", "up");
    await ip(host, "address", "add", `${addressOf(index)}/24`, "dev", "eth0");
    await ip(host, "link", "set", "eth0", "up");
    await ip(hub, "link", "set", linkOf(index), "master", BRIDGE, "up");
    hosts.push(host);
  }

  const network: Network = {
    hosts: hosts.map(({ runIn }, index) => ({
      address: addressOf(index),
      spawn(program, words, options = {}) {
        const [first = "", ...rest] = [...runIn, ...diesWithParent(), program, ...words];
        const child = spawn(first, rest, options);
        children.add(child);
        return child;
      },
    })),
    launch: (options, index) => {
      const port = options.sentinel ? SENTINEL_PORT : REDIS_PORT;
      return startRedisServer({ ...options, host: addressOf(index), port, runIn: hosts[index]?.runIn ?? [] });
    },
    // Taken off the bridge and not switched off: the host would see a link that is down, and end its connections.
    cut: (index) => ip(hub, "link", "set", linkOf(index), "nomaster"),
    heal: (index) => ip(hub, "link", "set", linkOf(index), "master", BRIDGE),
    async end() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }
    },
  };
  networks.push(network);
  return network;
}

/**
 * A network for some processes of this machine. It exists as long as a process in it: a shell that waits for the end of its input, which is
 * this process. However that ends, the network ends with it.
 */
interface Namespace {
  readonly pid: number;
  /** Words before a command that run it in there. */
  readonly runIn: readonly string[];
}

function addressOf(index: number): string {
  return `${SUBNET}.${index + 1}`;
}

function linkOf(index: number): string {
  return `host${index}`;
}

async function ip({ runIn }: Namespace, ...words: readonly string[]): Promise<void> {
  const [program = "", ...rest] = [...runIn, "ip", ...words];
  await promisify(execFile)(program, rest);
}

/** The process that keeps the namespace, once it is in there. */
async function holdOpen(before: readonly string[], children: Set<ChildProcess>): Promise<number> {
  const [program = "", ...words] = [...before, "sh", "-c", "echo inside; exec cat"];
  const holder = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] });
  let complaint = "";
  holder.stderr.setEncoding("utf8").on("data", (text: string) => (complaint += text));
  const isInside = await Promise.race([
    once(holder.stdout, "data").then(() => true),
    once(holder, "close").then(() => false),
  ]);
  if (!isInside) throw new Error(`${[program, ...words].join(" ")}: ${complaint}`);
  children.add(holder);
  return holder.pid as number;
}

function wayThatWorks(): Way | string {
  const missing = PROGRAMS.filter((program) => spawnSync(program, ["-V"]).status !== 0);
  if (missing.length > 0) return `${missing.join(", ")} not on PATH (in Debian's util-linux and iproute2)`;
  const complaints: string[] = [];
  for (const way of WAYS) {
    const { status, stderr } = spawnSync("unshare", [...way.create, "sh", "-c", PROBE], { encoding: "utf8" });
    if (status === 0) return way;
    complaints.push(`unshare ${way.create.join(" ")}: ${stderr.trim()}`);
  }
  return complaints.join("; ");
}
