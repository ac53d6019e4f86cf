/** What the documents' own commands leave in this folder is kept out of git and of images: secrets, and stores with the key of their receipts. */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";

const SECRET = [
  ".env",
  ".env.production",
  "importer-1.token",
  "me.token",
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

test.skipIf(!hasGit)("git ignores them, and nothing that it has", () => {
  expect(
    git("check-ignore", "--no-index", ...SECRET)
      .trim()
      .split("\n"),
  ).toEqual(SECRET);
  expect(git("ls-files", "--ignored", "--cached", "--exclude-standard")).toBe("");
});

test("images leave out the same", () => {
  const patternsIn = (file: string) => {
    const [, patterns = ""] = readFileSync(join(REPOSITORY, file), "utf8").split(/^# Secrets and state.*\n/m);
    return patterns.trim().split("\n");
  };
  // The one means any folder where nothing is said, the other the first.
  const asDocker = (pattern: string) => (pattern.startsWith("/") ? pattern.slice(1) : `**/${pattern}`);
  expect(patternsIn(".gitignore").length).toBeGreaterThan(5);
  expect(patternsIn(".dockerignore")).toEqual(patternsIn(".gitignore").map(asDocker));
});
