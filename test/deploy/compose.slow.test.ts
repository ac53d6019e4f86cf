/** The compose file, read by compose itself. Nothing is started: that needs a container engine. */
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { folderForTest, REPOSITORY } from "../processes/command.js";

const COMPOSE_COMMANDS = [["docker", "compose"], ["docker-compose"]];
const PASSWORDS = {
  CALLNUMBER_REDIS_PASSWORD: "a-password-of-the-coordinator-0123456789",
  CALLNUMBER_REDIS_OPERATOR_PASSWORD: "a-password-of-the-operator-0123456789",
};

const compose = COMPOSE_COMMANDS.find(
  ([program = "", ...words]) => spawnSync(program, [...words, "version"]).status === 0,
);

let emptyFile: string;

beforeEach(async (context) => {
  context.skip(compose === undefined, "neither docker compose nor docker-compose is on PATH");
  emptyFile = join(await folderForTest(), "empty.env");
  await writeFile(emptyFile, "");
});

test("is understood, with and without the profile that makes the first namespace", () => {
  expect(servicesOf(config([], PASSWORDS).stdout)).toEqual(expect.arrayContaining(["coordinator", "redis"]));
  expect(servicesOf(config(["--profile", "init"], PASSWORDS).stdout)).toEqual(["coordinator", "init", "redis"]);
});

test("publishes one port, and on this host alone", () => {
  const { stdout } = config(["--profile", "init"], PASSWORDS);
  expect(stdout.match(/^ +ports:$/gm)).toHaveLength(1);
  // The older compose writes one line, the newer one a field each.
  expect(stdout).toMatch(/- 127\.0\.0\.1:7300:7300\/tcp\n|host_ip: 127\.0\.0\.1\n/);
});

test.each(Object.keys(PASSWORDS))("stops without %s, and says where to read on", (name) => {
  for (const value of [undefined, ""]) {
    const { status, stdout, stderr } = config([], { ...PASSWORDS, [name]: value });
    expect(status).not.toBe(0);
    expect(stdout).toBe("");
    expect(stderr).toContain(name);
    expect(stderr).toContain("the head of docker-compose.yml");
  }
});

function config(flags: string[], passwords: Record<string, string | undefined>) {
  const [program = "", ...words] = compose ?? [];
  // A .env of whoever runs the tests must not reach compose.
  const files = ["--env-file", emptyFile, "--file", join(REPOSITORY, "docker-compose.yml")];
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("CALLNUMBER_"));
  return spawnSync(program, [...words, ...files, ...flags, "config"], {
    encoding: "utf8",
    env: { ...Object.fromEntries(inherited), ...passwords },
  });
}

function servicesOf(yaml: string): string[] {
  const [, services = ""] = /^services:\n((?: .*\n)+)/m.exec(yaml) ?? [];
  return [...services.matchAll(/^ {2}(\w+):$/gm)].map(([, name]) => name as string).sort();
}
