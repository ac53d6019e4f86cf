/**
 * Hosts on a network of their own, inside this machine, that can be cut from each other: packets vanish and nobody is told.
 * Made of Linux's namespaces, without root where those are open to all. Knows Redis only as one more program to run on a host.
 */
import { type ChildProcess, execFile, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { afterAll } from "vitest";
import { diesWithParent } from "../processes/dies-with-run.js";
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
  /** Packets pass again. Connections that nobody gave up meanwhile go on, once their sender tries again. */
  heal(index: number): Promise<void>;
  /** Kills what `spawn` started, and takes the network away. Without it that happens at the end of the test file. */
  end(): Promise<void>;
}

/** Why `startNetwork` cannot work here, for `ctx.skip(reason)`; undefined when it can. */
export function partitionUnavailable(): string | undefined {
  const way = wayThatWorks();
  return typeof way === "string" ? `no network can be partitioned: ${way}` : undefined;
}

/**
 * Resolves when all hosts are linked.
 * @throws Error when `partitionUnavailable()` gives a reason.
 */
export async function startNetwork(hostCount: number): Promise<Network> {
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

/** Words for `unshare` that make a network, and for `nsenter` that go into it. */
interface Way {
  readonly create: readonly string[];
  readonly enter: readonly string[];
}

/** With a user namespace everyone may, where the system lets them; without one root may, also in many a container. */
const WAYS: readonly Way[] = [
  { create: ["--user", "--map-root-user", "--net"], enter: ["--user", "--net", "--preserve-credentials"] },
  { create: ["--net"], enter: ["--net"] },
];
const PROGRAMS = ["unshare", "nsenter", "ip"];
const PROBE = "ip link add hub type bridge && ip link add end type veth peer name far && ip link set end master hub";

/**
 * A network of its own for some processes of this machine. It lives as long as a process in it. Here that is a shell that waits for the end
 * of its input, which is this process: however it ends, the network goes with it, and nothing has to be taken down.
 */
class NetworkNamespace {
  /** Words before a command that run it in here. */
  readonly runIn: readonly string[];

  private constructor(
    readonly pid: number,
    private readonly way: Way,
    /** Of this namespace and of those made inside: they end together. */
    private readonly children: Set<ChildProcess>,
  ) {
    this.runIn = ["nsenter", "--target", `${pid}`, ...way.enter];
  }

  /** @throws Error when `partitionUnavailable()` gives a reason. */
  static async create(): Promise<NetworkNamespace> {
    const way = wayThatWorks();
    if (typeof way === "string") throw new Error(way);
    const children = new Set<ChildProcess>();
    return new NetworkNamespace(await holdOpen(["unshare", ...way.create], children), way, children);
  }

  /** Another network beside this one, to be linked with it. */
  async another(): Promise<NetworkNamespace> {
    const pid = await holdOpen([...this.runIn, "unshare", "--net"], this.children);
    return new NetworkNamespace(pid, this.way, this.children);
  }

  /** Runs `ip` in here, to its end. */
  async ip(...words: readonly string[]): Promise<void> {
    const [program, ...rest] = [...this.runIn, "ip", ...words];
    await promisify(execFile)(program as string, rest);
  }

  spawn(program: string, words: readonly string[], options: SpawnOptions = {}): ChildProcess {
    const [first, ...rest] = [...this.runIn, ...diesWithParent(), program, ...words];
    const child = spawn(first as string, rest, options);
    this.children.add(child);
    return child;
  }

  /** Kills all that was spawned here and in the networks beside it. */
  async end(): Promise<void> {
    for (const child of this.children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
  }
}

/** The process that keeps the namespace, once it is in there. */
async function holdOpen(before: readonly string[], children: Set<ChildProcess>): Promise<number> {
  const [program, ...words] = [...before, "sh", "-c", "echo inside; exec cat"];
  const holder = spawn(program as string, words, { stdio: ["pipe", "pipe", "pipe"] });
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
