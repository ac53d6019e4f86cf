/** The packages as `npm run pack` makes them, and how someone outside of the repository installs them. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";
import { REPOSITORY } from "../processes/command.js";

export const COMMAND_PACKAGE = "callnumber";
export const ARCHIVE_PACKAGE = "callnumber-archive";
export const ONLY_ESM = ["@callnumber/schemes", "@callnumber/coordinator"];
export const LIBRARIES = ["@callnumber/protocol", "@callnumber/client", ...ONLY_ESM];
export const { version } = JSON.parse(readFileSync(join(REPOSITORY, "packages", "cli", "package.json"), "utf8"));
/** With a blank in its name, as a folder of a user may have. */
export const tarballs = mkdtempSync(join(tmpdir(), "callnumber tarballs "));

/** How npm calls a registry that it cannot reach. */
const UNREACHABLE = /\bnpm (?:error|ERR!) code (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH)\b/;

/** Packs all packages before the tests of a file, and removes them after these. */
export function packForTests(): void {
  beforeAll(() => run(REPOSITORY, process.execPath, "scripts/pack.mjs", tarballs));
  afterAll(() => rmSync(tarballs, { recursive: true }));
}

export function tarballOf(name: string): string {
  return join(tarballs, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
}

export async function install(directory: string, ...words: readonly string[]): Promise<void> {
  await run(directory, "npm", "install", "--ignore-scripts", "--engine-strict", "--no-audit", "--no-fund", ...words);
}

/** As `install`, for packages of npm's registry alone. Returns why there is none, for `skip`; undefined when all are installed. */
export async function registryUnavailable(directory: string, ...words: readonly string[]): Promise<string | undefined> {
  try {
    await install(directory, ...words);
    return undefined;
  } catch (error) {
    const [, code] = UNREACHABLE.exec(String((error as { stderr?: unknown }).stderr)) ?? [];
    if (code === undefined) throw error;
    return `npm's registry cannot be reached (${code})`;
  }
}

/** Runs a program to its end and resolves to its standard output. */
export async function run(cwd: string, program: string, ...words: readonly string[]): Promise<string> {
  return (await promisify(execFile)(program, words, { cwd })).stdout;
}
