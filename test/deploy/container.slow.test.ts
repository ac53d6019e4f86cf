/** The rights that the image and the compose file give a process: read as text, since a container engine may be missing. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { folderForTest, REPOSITORY, serveProcess } from "../processes/command.js";
import { newAuthority } from "../tls/certificates.js";
import { writeTlsFiles } from "../tls/files.js";

const dockerfile = readFileSync(join(REPOSITORY, "Dockerfile"), "utf8");
const compose = readFileSync(join(REPOSITORY, "docker-compose.yml"), "utf8");

const lastStage = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));

test("the image runs as a user that owns nothing of the program", () => {
  const users = [...lastStage.matchAll(/^USER (.*)$/gm)].map(([, user]) => user);
  expect(users).toEqual(["node"]);
  expect(lastStage.indexOf("\nUSER node\n")).toBeLessThan(lastStage.indexOf("\nENTRYPOINT "));
  expect(lastStage).not.toMatch(/--chown|chmod .*777/);
  // What was copied before belongs to root.
  expect(lastStage.indexOf("COPY --from=build")).toBeLessThan(lastStage.indexOf("\nUSER node\n"));
});

test("the health check of the image works with TLS and without", async () => {
  const [, json = ""] = /HEALTHCHECK [^]*?CMD (\[.*\])\n/.exec(lastStage) ?? [];
  const [program, ...words] = JSON.parse(json) as [string, ...string[]];
  const isHealthy = (url: string, env: Readonly<Record<string, string>>) => {
    const { PATH = "" } = process.env;
    const own = { PATH, CALLNUMBER_PORT: new URL(url).port, ...env };
    return spawnSync(program, words, { env: own }).status === 0;
  };
  const plain = await serveProcess("memory:");
  expect(isHealthy(plain.url, {})).toBe(true);
  const files = writeTlsFiles(await folderForTest(), newAuthority().issue({ names: ["elsewhere.example"] }));
  const env = { CALLNUMBER_TLS_CERTIFICATE: files.certificate };
  const encrypted = await serveProcess("memory:", "--tls-certificate", files.certificate, "--tls-key", files.key);
  expect(isHealthy(encrypted.url, env)).toBe(true);
  expect(isHealthy(plain.url, env)).toBe(false);
  expect(isHealthy("http://127.0.0.1:1", {})).toBe(false);
});

test("the image contains no secret, and none is an argument of its build", () => {
  expect(dockerfile.match(/^ARG .*$/gm)).toEqual(["ARG NODE_VERSION=24"]);
  expect(dockerfile).not.toMatch(/PASSWORD|TOKEN|SECRET/i);
});

test.each([
  ["x-coordinator", 0],
  ["redis", 2],
])("%s has a read-only root, no rights of root and no way to get them", (name, indent) => {
  const block = blockOf(name, indent);
  expect(block).toMatch(/^ +read_only: true$/m);
  expect(block).toMatch(/^ +cap_drop: \[ALL\]$/m);
  expect(block).toMatch(/^ +security_opt: \["no-new-privileges:true"\]$/m);
});

test.each(["coordinator", "init"])("%s inherits all that from x-coordinator, and overrides none of it", (name) => {
  expect(blockOf(name, 2)).toMatch(/^ +<<: \*coordinator$/m);
  expect(blockOf(name, 2)).not.toMatch(/read_only|cap_|security_opt|privileged|user:/);
});

test("Redis and PostgreSQL run as their own users, and only a coordinator's port is published", () => {
  for (const name of ["redis", "postgres"]) expect(blockOf(name, 2)).toMatch(new RegExp(`^ +user: ${name}$`, "m"));
  expect(compose).not.toMatch(/privileged|cap_add|network_mode|pid:|docker\.sock/);
  expect(compose.match(/^ +ports: .*$/gm)).toEqual(Array(2).fill('    ports: ["127.0.0.1:7300:7300"]'));
});

test("the compose file contains no secret: each comes from the environment, and has no default", () => {
  for (const [value] of compose.matchAll(/\$\{[A-Z_]*PASSWORD[^}]*\}/g)) expect(value).toMatch(/:\?make it first/);
  expect(compose).not.toMatch(/PASSWORD[A-Z_]*[:=] *["']?[A-Za-z0-9]/);
});

/** The lines behind a name that are indented further than it. */
function blockOf(name: string, indent: number): string {
  const lines = compose.split("\n");
  const first = lines.findIndex((line) => line.startsWith(`${" ".repeat(indent)}${name}:`));
  expect(first).toBeGreaterThan(0);
  const length = lines.slice(first + 1).findIndex((line) => /\S/.test(line) && line.search(/\S/) <= indent);
  return lines.slice(first + 1, length < 0 ? undefined : first + 1 + length).join("\n");
}

const COMPOSE_COMMANDS = [["docker", "compose"], ["docker-compose"]];
const PASSWORDS = {
  CALLNUMBER_REDIS_PASSWORD: "a-password-of-the-coordinator-0123456789",
  CALLNUMBER_REDIS_OPERATOR_PASSWORD: "a-password-of-the-operator-0123456789",
  CALLNUMBER_POSTGRES_PASSWORD: "a-password-of-the-coordinator-9876543210",
  CALLNUMBER_POSTGRES_OWNER_PASSWORD: "a-password-of-the-owner-0123456789",
};

const composeCommand = COMPOSE_COMMANDS.find(
  ([program = "", ...words]) => spawnSync(program, [...words, "version"]).status === 0,
);

let emptyFile: string;

/** Nothing is started: that needs a container engine. */
describe("the compose file, read by compose itself,", () => {
  beforeEach(async (context) => {
    context.skip(composeCommand === undefined, "neither docker compose nor docker-compose is on PATH");
    emptyFile = join(await folderForTest(), "empty.env");
    await writeFile(emptyFile, "");
  });

  test("compose accepts the file, with and without its profiles", () => {
    const servicesIn = (...flags: string[]) => servicesOf(config(flags, PASSWORDS).stdout);
    expect(servicesIn()).toEqual(expect.arrayContaining(["coordinator", "redis"]));
    const ofInit = ["coordinator", "init", "init-postgres", "postgres", "redis"];
    // The older compose lists all services, whatever the profile is.
    expect(servicesIn("--profile", "init")).toEqual(expect.arrayContaining(ofInit));
    const ofPostgres = ["coordinator", "coordinator-postgres", "postgres", "redis"];
    expect(servicesIn("--profile", "postgres")).toEqual(expect.arrayContaining(ofPostgres));
  });

  test("compose publishes a coordinator's port alone, and on this host alone", () => {
    const { stdout } = config(["--profile", "postgres"], PASSWORDS);
    expect(stdout.match(/^ +ports:$/gm)).toHaveLength(2);
    // The older compose writes one line, the newer one a field each.
    expect(stdout.match(/- 127\.0\.0\.1:7300:7300\/tcp\n|host_ip: 127\.0\.0\.1\n/g)).toHaveLength(2);
  });

  test.each(Object.keys(PASSWORDS))("compose stops without %s, and prints where to read on", (name) => {
    for (const value of [undefined, ""]) {
      const { status, stdout, stderr } = config([], { ...PASSWORDS, [name]: value });
      expect(status).not.toBe(0);
      expect(stdout).toBe("");
      expect(stderr).toContain(name);
      expect(stderr).toContain("the head of docker-compose.yml");
    }
  });
});

function config(flags: string[], passwords: Record<string, string | undefined>) {
  const [program = "", ...words] = composeCommand ?? [];
  // A .env of this machine must not reach compose.
  const files = ["--env-file", emptyFile, "--file", join(REPOSITORY, "docker-compose.yml")];
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("CALLNUMBER_"));
  return spawnSync(program, [...words, ...files, ...flags, "config"], {
    encoding: "utf8",
    env: { ...Object.fromEntries(inherited), ...passwords },
  });
}

function servicesOf(yaml: string): string[] {
  const [, services = ""] = /^services:\n((?: .*\n)+)/m.exec(yaml) ?? [];
  return [...services.matchAll(/^ {2}([\w-]+):$/gm)].map(([, name]) => name as string).sort();
}
