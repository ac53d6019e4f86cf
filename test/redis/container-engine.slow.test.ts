/** A run of the tests where a container engine is: podman's, with an image of its own made from this machine's Redis, as no registry is asked. */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import { launch, outputOf, type RunningServer } from "../processes/server-process.js";

const IMAGE = "docker.io/library/redis:8-alpine";
/** What testcontainers runs in it to see whether the port is open, with the Redis. */
const PROGRAMS = ["/bin/sh", "cat", "awk", "grep", "sleep"];

/** Limits below those that a sandbox may have, and no process that waits five minutes after a command in a container has ended. */
const ENGINE_CONFIGURATION = `[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
exit_command_delay = 1
`;

const NEEDED = ["podman", "runc", "/usr/lib/podman/netavark", "iptables"];
const missing = NEEDED.filter((name) => pathOf(name) === undefined);
const redis = inject("redis").binary;
const unavailable =
  (missing.length > 0 && `no ${missing.join(", no ")} here`) ||
  (process.getuid?.() !== 0 && "the engine needs root") ||
  (redis?.libraryPath !== undefined || redis === undefined ? "no redis-server is installed here" : undefined);

let folder: string;
let engine: RunningServer;

beforeAll(async () => {
  if (unavailable) return;
  folder = mkdtempSync(join(tmpdir(), "callnumber-engine-"));
  writeFileSync(join(folder, "containers.conf"), ENGINE_CONFIGURATION);
  const environment = { CONTAINERS_CONF: join(folder, "containers.conf") };
  const words = [...options(), "system", "service", "--time=0", `unix://${socketPath()}`];
  engine = await launch({ program: "podman", words, environment }, ping);
});
afterAll(async () => {
  if (unavailable) return;
  await engine.kill();
  await podman("system", "reset", "--force");
  rmSync(folder, { recursive: true });
});

test.for([
  ["starts", [redis?.executable ?? ""], "a container of redis:8-alpine"],
  ["does not start", [], "could not start a Redis"],
] as const)("the tests run where a container of Redis %s, and leave none", async ([, programs, printed], { skip }) => {
  skip(Boolean(unavailable), unavailable || undefined);
  await importImage(programs);
  const engineEnvironment = { DOCKER_HOST: `unix://${socketPath()}`, TESTCONTAINERS_RYUK_DISABLED: "true" };
  const environment = { ...engineEnvironment, REDIS_URL: "", CALLNUMBER_TEST_ALL: "" };
  const words = [join(REPOSITORY, "node_modules", "vitest", "vitest.mjs"), "run", "redis-keys", "doctor-running"];
  const output = await outputOf({ program: process.execPath, words, environment });
  expect(output).toContain(printed);
  expect(output).not.toContain("skipped");
  expect(await podman("ps", "--all", "--quiet")).toBe("");
});

/** An image with these programs, those that testcontainers needs, and their libraries. */
async function importImage(programs: readonly string[]): Promise<void> {
  const root = mkdtempSync(join(folder, "root-"));
  for (const name of [...PROGRAMS.map((one) => pathOf(one) ?? ""), ...programs]) {
    const libraries = execFileSync("ldd", [name], { encoding: "utf8" }).match(/\/\S+/g) ?? [];
    for (const path of [name, ...libraries]) {
      mkdirSync(join(root, dirname(path)), { recursive: true });
      copyFileSync(realpathSync(path), join(root, path));
    }
  }
  const archive = `${root}.tar`;
  await outputOf({ program: "tar", words: ["-C", root, "-cf", archive, "."] });
  await podman("import", "--change", 'ENV PATH="/usr/bin:/bin"', archive, IMAGE);
}

function pathOf(name: string): string | undefined {
  return spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim() || undefined;
}

const socketPath = () => join(folder, "podman.sock");

function ping(): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: socketPath(), path: "/_ping" }, (response) => {
      response.resume();
      resolve();
    });
    asked.on("error", reject).end();
  });
}

function options(): string[] {
  const places = ["root", "runroot", "tmpdir"].flatMap((name) => [`--${name}`, join(folder, name)]);
  return [...places, "--cgroup-manager", "cgroupfs", "--runtime", "runc"];
}

function podman(...words: readonly string[]): Promise<string> {
  return outputOf({ program: "podman", words: [...options(), ...words] });
}
