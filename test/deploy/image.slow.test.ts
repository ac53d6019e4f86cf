/** The image as its Dockerfile makes it, built and run by podman. Its base is made of Debian's packages, so no registry of images is asked. */
import { execFile, spawnSync } from "node:child_process";
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { afterAll, beforeAll, expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import { freePort } from "../processes/server-process.js";

const PROGRAMS = ["podman", "runc", "debootstrap"];
const NODE = process.versions.node.split(".")[0];
const BASE = `docker.io/library/node:${NODE}-slim`;
const IMAGE = "localhost/callnumber";
/** Of the image's user. */
const USER_ID = 1000;

const missing = PROGRAMS.filter((program) => spawnSync(program, ["--version"]).status !== 0);
const unavailable =
  missing.length > 0
    ? `no ${missing.join(", no ")} here: apt-get install --no-install-recommends ${PROGRAMS.join(" ")}`
    : process.getuid?.() !== 0 && "debootstrap needs root";

/** Without systemd, and with the control groups of any kernel. */
const ENGINE = ["--cgroup-manager", "cgroupfs", "--runtime", "runc"];
/** The steps of the build run in the network of this machine. Only Docker's format has health checks. */
const BUILD = ["--isolation", "chroot", "--network", "host", "--pull=never", "--format", "docker"];
/** Limits below those that a sandbox may have. */
const RUN = ["--network", "host", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"];

let folder: string;
let inMemory: string;

beforeAll(async () => {
  if (unavailable) return;
  folder = mkdtempSync(join(tmpdir(), "callnumber-image-"));
  inMemory = mkdtempSync("/dev/shm/callnumber-image-");
  await makeBase();
  await podman("build", ...BUILD, "--build-arg", `NODE_VERSION=${NODE}`, "--tag", IMAGE, REPOSITORY);
});
afterAll(async () => {
  if (unavailable) return;
  await podman("system", "reset", "--force");
  for (const directory of [folder, inMemory]) rmSync(directory, { recursive: true });
});

test("the image leases on a read-only root as an unprivileged user, and a restart skips no run", async ({ skip }) => {
  skip(Boolean(unavailable), unavailable || undefined);
  const [size = 0, baseSize = 0] = await Promise.all([IMAGE, BASE].map(sizeOf));
  console.log(`the image: ${megabytes(size)}, of which the base is ${megabytes(baseSize)}`);
  expect(size - baseSize).toBeLessThan(25_000_000);

  const [state, checkpoints] = ["state", "checkpoints"].map((name) => directoryOfUser(folder, name));
  const [memory, otherMemory] = ["one", "other"].map((name) => directoryOfUser(inMemory, name));
  const volumes = [`${state}:/var/lib/callnumber`, `${checkpoints}:/var/lib/callnumber-checkpoints`];
  const started = (mount: string, ...more: string[]) => start([...volumes, `${mount}:/dev/shm`], ...more);

  const first = await started(memory as string, "--create");
  expect(await first.exec("id", "-u")).toBe(`${USER_ID}\n`);
  await expect(first.exec("touch", "/app/file")).rejects.toThrow("Read-only file system");
  expect(await first.exec("find", "/app", "-user", "node")).toBe("");
  await podman("healthcheck", "run", first.name);
  const run = await first.leasedRun();
  await first.stop();

  // A new container, as after an update of the image.
  const second = await started(memory as string);
  expect(await second.leasedRun()).toBe(run + 1);
  await second.stop();

  // The same without the directory of the host's memory: the marker is gone.
  const third = await started(otherMemory as string);
  expect(await third.leasedRun()).toBeGreaterThan(run + 2);
  await third.stop();
});

/** Starts a container as the documents show, and resolves when it is ready. */
async function start(volumes: readonly string[], ...more: string[]) {
  const port = await freePort();
  const rights = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
  const env = ["--env", `CALLNUMBER_PORT=${port}`];
  const mounts = volumes.flatMap((volume) => ["--volume", volume]);
  const id = await podman(
    "run",
    "--detach",
    "--pull=never",
    ...RUN,
    ...rights,
    ...env,
    ...mounts,
    IMAGE,
    "serve",
    ...more,
  );
  const name = id.trim();
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(isReady, { message: "the container is not ready" }).toBe(true);
  const exec = (...words: string[]) => podman("exec", name, ...words);
  return {
    name,
    exec,
    async leasedRun(): Promise<number> {
      const coordinator = ["--coordinator", `http://127.0.0.1:${port}`];
      const number = await exec("node", "/app/bin/callnumber.js", "next", ...coordinator);
      return decodeCallNumber(number.trim()).run;
    },
    /** Sends SIGTERM. It must end by itself: podman kills it only after half an hour. */
    async stop(): Promise<void> {
      await podman("stop", "--time", "1800", name);
      expect((await podman("inspect", "--format", "{{.State.ExitCode}}", name)).trim()).toBe("0");
    },
  };
}

/** Stands for the official image of Node: Debian, with the Node and the npm that run this test, and a user `node`. */
async function makeBase(): Promise<void> {
  const context = join(REPOSITORY, "node_modules", ".cache", "image-base");
  const debian = join(context, "debian.tar");
  mkdirSync(context, { recursive: true });
  if (!existsSync(debian)) {
    const root = join(folder, "debian");
    await execute("debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", root);
    await execute("tar", "-C", root, "-cf", `${debian}.${process.pid}`, ".");
    renameSync(`${debian}.${process.pid}`, debian);
  }
  copyFileSync(process.execPath, join(context, "node"));
  const npm = dirname(dirname(realpathSync((await execute("sh", "-c", "command -v npm")).trim())));
  rmSync(join(context, "npm"), { recursive: true, force: true });
  cpSync(npm, join(context, "npm"), { recursive: true, verbatimSymlinks: true });
  // The registry of this machine, which may have an authority of its own.
  const { NODE_EXTRA_CA_CERTS: authorities = "/etc/ssl/certs/ca-certificates.crt" } = process.env;
  copyFileSync(authorities, join(context, "authorities.crt"));
  const registry = (await execute("npm", "config", "get", "registry")).trim();
  writeFileSync(join(context, "Dockerfile"), baseDockerfile(registry));
  await podman("build", ...BUILD, "--tag", BASE, context);
}

function baseDockerfile(registry: string): string {
  return `FROM scratch
ADD debian.tar /
COPY node /usr/local/bin/
COPY npm /usr/local/lib/node_modules/npm
COPY authorities.crt /etc/ssl/
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/authorities.crt npm_config_registry=${registry}
RUN useradd --uid ${USER_ID} --create-home node && cd /usr/local/bin && \\
    for name in npm npx; do ln -s ../lib/node_modules/npm/bin/$name-cli.js $name; done
`;
}

async function sizeOf(image: string): Promise<number> {
  return Number(await podman("image", "inspect", "--format", "{{.Size}}", image));
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

function directoryOfUser(parent: string, name: string): string {
  const directory = join(parent, name);
  mkdirSync(directory, { mode: 0o700 });
  chownSync(directory, USER_ID, USER_ID);
  return directory;
}

function podman(...words: string[]): Promise<string> {
  const [root, runRoot, temporary] = ["storage", "run", "tmp"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  return execute("podman", "--root", root, "--runroot", runRoot, "--tmpdir", temporary, ...ENGINE, ...words);
}

async function execute(program: string, ...words: string[]): Promise<string> {
  return (await promisify(execFile)(program, words, { maxBuffer: 100_000_000 })).stdout;
}
