/** Runs systemd as process 1 of namespaces of its own: systemd-machine.sh makes them. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { getuid, pid } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { launch, outputOf } from "../processes/server-process.js";

const PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const PROGRAMS = ["node", "npm", "curl", "unshare", "nsenter", "useradd", "runuser"];

export interface SystemdMachine {
  /** Runs lines of the shell as root, until one fails. @throws Error with what they wrote to their standard error. */
  run(lines: string): Promise<string>;
  stop(): Promise<void>;
}

/** Why it can't run on this machine; undefined when it can be tried. */
export function systemdUnavailable(): string | undefined {
  if (getuid?.() !== 0) return "only root can give systemd its namespaces and a cgroup";
  if (!existsSync("/lib/systemd/systemd")) return "systemd is not installed";
  const isMissing = (name: string) => spawnSync("sh", ["-c", `command -v ${name}`], { env: { PATH } }).status !== 0;
  const missing = PROGRAMS.filter(isMissing);
  if (missing.length > 0) return `not in ${PATH}: ${missing.join(", ")}`;
  return mountOfCgroups() === undefined ? "no cgroup2 file system is mounted" : undefined;
}

/** @throws Error when systemd does not start. */
export async function startSystemd(folder: string): Promise<SystemdMachine> {
  const [, own = "/"] = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8")) ?? [];
  const cgroup = join(mountOfCgroups() as string, own, `callnumber-test-${pid}`);
  mkdirSync(cgroup);
  const words = [join(import.meta.dirname, "systemd-machine.sh"), cgroup, folder];
  const isUp = (server: { readonly pid: number }) => runIn(server.pid, "systemctl is-active basic.target");
  try {
    const server = await launch({ program: "sh", words }, isUp);
    return {
      run: (lines) => runIn(server.pid, lines),
      async stop() {
        await server.kill();
        await removeCgroup(cgroup);
      },
    };
  } catch (error) {
    await removeCgroup(cgroup);
    throw error;
  }
}

function runIn(parent: number, lines: string): Promise<string> {
  const child = readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8").trim();
  const environment = ["env", "-i", `PATH=${PATH}`, "HOME=/root", "npm_config_offline=true"];
  const shell = ["sh", "-ec", `cd /root/callnumber\n${lines}`];
  return outputOf({
    program: "nsenter",
    words: ["--target", child, "--all", "--root", "--wd", ...environment, ...shell],
  });
}

function mountOfCgroups(): string | undefined {
  return / (\/\S*) \S+ (?:\S+:\S+ )*- cgroup2 /.exec(readFileSync("/proc/self/mountinfo", "utf8"))?.[1];
}

/** Those below it first. Killed processes stay in it for a moment. */
async function removeCgroup(path: string): Promise<void> {
  const entries = readdirSync(path, { withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) await removeCgroup(join(path, entry.name));
  for (;;) {
    try {
      rmdirSync(path);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
      await delay(10);
    }
  }
}
