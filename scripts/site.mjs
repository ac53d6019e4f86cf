/**
 * `npm run site`: builds the documentation as a site into site/dist. Options go to `vitepress build`. The site has packages of its
 * own, which are installed here, when they are missing or not as locked.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SITE = join(ROOT, "site");
const LOCKED = join(SITE, "pnpm-lock.yaml");
/** pnpm keeps a copy of what it has installed. */
const INSTALLED = join(SITE, "node_modules", ".pnpm", "lock.yaml");
const VITEPRESS = join(SITE, "node_modules", "vitepress", "bin", "vitepress.js");

if (!existsSync(INSTALLED) || readFileSync(INSTALLED, "utf8") !== readFileSync(LOCKED, "utf8")) {
  const [pnpm] = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).packageManager.split("+");
  console.log("Installing the site's generator: once, and again when it changes.");
  // On Windows npx is a .cmd file, which only a shell can start.
  run("npx", ["--yes", pnpm, "install", "--frozen-lockfile", "--loglevel=error"], process.platform === "win32");
}
const options = process.argv.slice(2);
run(process.execPath, [VITEPRESS, "build", ".", ...options]);
if (options.length === 0) console.log("To look at it: python3 -m http.server --bind 127.0.0.1 --directory site/dist");

function run(command, args, shell = false) {
  const { status, error } = spawnSync(command, args, { cwd: SITE, shell, stdio: "inherit" });
  if (error) console.error(`${command} could not be started: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}
