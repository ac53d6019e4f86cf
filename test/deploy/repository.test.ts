/** Secrets and stores stay out of git and of images, and no package runs an install script, neither here nor where ours are installed. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";

const SECRET = [
  ".env",
  ".env.production",
  "importer-1.token",
  "me.token",
  "coordinator.url",
  "tokens",
  "tokens/tokens",
  "tokens.lock",
  "tls.key",
  "deploy/tls.pem",
  "store.db",
  "store.db-wal",
  "store.db-shm",
  "store.db.lock",
  "copy.db",
  "copy.db.partial",
];

const git = (...words: string[]) => execFileSync("git", words, { cwd: REPOSITORY, encoding: "utf8" });
const hasGit = spawnSync("git", ["rev-parse", "--git-dir"], { cwd: REPOSITORY }).status === 0;

test.skipIf(!hasGit)("git ignores secrets and stores, and no file that it tracks", () => {
  expect(
    git("check-ignore", "--no-index", ...SECRET)
      .trim()
      .split("\n"),
  ).toEqual(SECRET);
  expect(git("ls-files", "--ignored", "--cached", "--exclude-standard")).toBe("");
});

test("images leave out what git ignores", () => {
  const patternsIn = (file: string) => {
    const [, patterns = ""] = readFileSync(join(REPOSITORY, file), "utf8").split(/^# Secrets and state.*\n/m);
    return patterns.trim().split("\n");
  };
  // The one means any folder where nothing is said, the other the first.
  const asDocker = (pattern: string) => (pattern.startsWith("/") ? pattern.slice(1) : `**/${pattern}`);
  expect(patternsIn(".gitignore").length).toBeGreaterThan(5);
  expect(patternsIn(".dockerignore")).toEqual(patternsIn(".gitignore").map(asDocker));
});

const HOOKS = ["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare"];
const STORE = join(REPOSITORY, "node_modules", ".pnpm");

interface Manifest extends Readonly<Record<string, unknown>> {
  readonly name: string;
  readonly scripts?: Readonly<Record<string, string>>;
}

test("our own packages have no install scripts, and the workspace only the bootstrap", () => {
  const folders = ["packages", "examples"].flatMap((kind) =>
    readdirSync(join(REPOSITORY, kind)).map((name) => join(kind, name)),
  );
  const manifests = folders.map((folder) => join(REPOSITORY, folder, "package.json")).filter(existsSync);
  expect(manifests.length).toBeGreaterThan(4);
  expect(manifests.filter((path) => hooksOf(manifestAt(path), HOOKS).length > 0)).toEqual([]);
  const workspace = manifestAt(join(REPOSITORY, "package.json"));
  expect(hooksOf(workspace, HOOKS)).toEqual(["prepare"]);
  expect(workspace.scripts?.["prepare"]).toBe("node scripts/bootstrap.mjs");
});

test("npm finds nothing to install in the workspace, so it runs no other package's script", () => {
  expect(readFileSync(join(REPOSITORY, ".npmrc"), "utf8")).toMatch(/^legacy-peer-deps=true$/m);
  const { name, license, bin, engines, peerDependencies, ...others } = manifestAt(join(REPOSITORY, "package.json"));
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies", "workspaces"]) {
    expect(others, `${kind}: what is installed belongs to the peers (ADR 0005)`).not.toHaveProperty(kind);
  }
  // Else `npm install` changes it: run that to repair it.
  const { packages } = JSON.parse(readFileSync(join(REPOSITORY, "package-lock.json"), "utf8"));
  expect(packages).toEqual({ "": { name, license, bin, engines, peerDependencies } });
});

test("pnpm denies each package's install scripts by name, and new ones", () => {
  const settings = readFileSync(join(REPOSITORY, "pnpm-workspace.yaml"), "utf8");
  expect(settings).toMatch(/^strictDepBuilds: true$/m);
  expect(settings).not.toMatch(/dangerouslyAllowAllBuilds|onlyBuiltDependencies/);
  expect([...denied(settings).values()]).toEqual([...denied(settings)].map(() => "false"));
});

test("every installed package with an install script is denied", () => {
  const names = new Set(denied(readFileSync(join(REPOSITORY, "pnpm-workspace.yaml"), "utf8")).keys());
  const withScripts = new Set(
    installedManifests()
      .map(manifestAt)
      .filter((manifest) => hooksOf(manifest, ["preinstall", "install", "postinstall"]).length > 0)
      .map(({ name }) => name),
  );
  // They are there: else this reads the wrong folder.
  expect(withScripts.size).toBeGreaterThan(0);
  expect([...withScripts].filter((name) => !names.has(name))).toEqual([]);
});

/** The value of the setting by package name. */
function denied(settings: string): ReadonlyMap<string, string> {
  const [, lines = ""] = /^allowBuilds:\n((?: .*\n)+)/m.exec(settings) ?? [];
  const pairs = [...lines.matchAll(/^ +"?([^":]+)"?: (\w+)$/gm)].map(
    ([, name = "", value = ""]) => [name, value] as const,
  );
  expect(pairs.length).toBeGreaterThan(0);
  return new Map(pairs);
}

function installedManifests(): readonly string[] {
  return readdirSync(STORE).flatMap((entry) => {
    const folder = join(STORE, entry, "node_modules");
    if (!existsSync(folder)) return [];
    const names = readdirSync(folder).flatMap((name) =>
      name.startsWith("@") ? readdirSync(join(folder, name)).map((rest) => join(name, rest)) : [name],
    );
    return names.map((name) => join(folder, name, "package.json")).filter(existsSync);
  });
}

function manifestAt(path: string): Manifest {
  return JSON.parse(readFileSync(path, "utf8")) as Manifest;
}

function hooksOf({ scripts = {} }: Manifest, hooks: readonly string[]): readonly string[] {
  return hooks.filter((hook) => Object.hasOwn(scripts, hook));
}
