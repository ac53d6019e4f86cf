/**
 * A network of its own for some processes of this machine, as Linux's namespaces give it.
 * It lives as long as a process in it. Here that is a shell that waits for the end of its input, which is this process:
 * however it ends, the network goes with it, and nothing has to be taken down.
 */
import { type ChildProcess, execFile, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { diesWithParent } from "../processes/dies-with-run.js";

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

/** Why `NetworkNamespace.create` cannot work here; undefined when it can. Tries it out, with a bridge and a link. */
export function namespacesUnavailable(): string | undefined {
  const way = wayThatWorks();
  return typeof way === "string" ? way : undefined;
}

export class NetworkNamespace {
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

  /** @throws Error when `namespacesUnavailable()` gives a reason. */
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
