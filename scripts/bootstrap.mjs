/**
 * Makes a fresh clone ready to run: dependencies installed, TypeScript built, the console built. The npm scripts demo, test and check begin here.
 * Uses Node alone, since nothing is installed yet, and knows nothing of what is run afterwards.
 * A second run touches no network: npx would ask the registry even for a version it has, so a stamp decides.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const STAMP = join(ROOT, "node_modules", ".bootstrap-stamp");
const CONSOLE_STAMP = join(ROOT, "node_modules", ".console-stamp");
const CONSOLE = join("packages", "console");
const BUILT_CONSOLE = join(ROOT, "packages", "coordinator", "dist", "console", "index.html");
/** Built here alone: its imports are not right before `placeContract`, so a plain `tsc --build` must not touch it. */
const CONTRACT = join("packages", "coordinator", "tsconfig.contract.json");
const TSC = join(ROOT, "node_modules", "typescript", "bin", "tsc");

/**
 * npm passes its own settings on as npm_* variables. `npm run -s` so silences pnpm, errors included.
 * Only those are kept that name the registry, or that are needed to reach it.
 */
const NPM_SETTINGS_KEPT =
  /^npm_config_(cache|userconfig|globalconfig|registry|cafile|ca|strict_ssl|proxy|https_proxy|noproxy)$/;

const SIGNALS_PASSED_ON = ["SIGINT", "SIGTERM", "SIGHUP"];

const manifest = JSON.parse(read("package.json"));

refuseOldNode();
await install();
await build();
placeContract();
copyErrorReference();
await buildConsole();

function refuseOldNode() {
  const [floorMajor, floorMinor] = manifest.engines.node.match(/\d+/g).map(Number);
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > floorMajor || (major === floorMajor && minor >= floorMinor)) return;
  fail(
    `This is Node ${process.versions.node}, and the project needs ${manifest.engines.node}. Install a newer Node and try again.`,
  );
}

async function install() {
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === hashOfInstallInputs() && existsSync(TSC)) return;

  const [pnpm] = manifest.packageManager.split("+");
  console.log(`Installing the dependencies with ${pnpm}: once, and again when they change.`);
  // An install that is cut short must not look finished to the next run.
  rmSync(STAMP, { force: true });
  const locked = read("pnpm-lock.yaml");
  // pnpm keeps the lock file frozen where CI is set. Elsewhere it adds what is missing, such as a new package under examples.
  await run("npx", ["--yes", pnpm, "install", "--prefer-offline"], {
    env: environmentWithoutNpm(),
    // On Windows npx is a .cmd file, which only a shell can start.
    shell: process.platform === "win32",
    advice: [
      "The dependencies could not be installed. The output above has the reason.",
      "If it speaks of the network: check the connection, the proxy and the registry (npm config get registry), and try again.",
      `If it speaks of an outdated lock file: run npx --yes ${pnpm} install, and commit pnpm-lock.yaml.`,
    ],
  });
  if (read("pnpm-lock.yaml") !== locked) {
    console.log("pnpm-lock.yaml was out of date. It is updated: commit it with the package.json that changed.");
  }
  writeFileSync(STAMP, hashOfInstallInputs());
}

async function build() {
  const output = await run(process.execPath, [TSC, "--build", "--listEmittedFiles", ".", CONTRACT], {
    advice: ["The TypeScript did not compile. The output above names each file and line."],
  });
  const written = output.match(/^TSFILE: .*\.js$/gm);
  if (written) console.log(`Built ${written.length} ${written.length === 1 ? "file" : "files"}.`);
}

/** The contract of a store is published from the tests, which import the sources that are built one folder above. */
function placeContract() {
  const folder = join(ROOT, "packages", "coordinator", "dist", "contract");
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder).filter((one) => /\.(?:js|d\.ts)$/.test(one))) {
    const text = readFileSync(join(folder, name), "utf8");
    if (text.includes('"../src/')) writeFileSync(join(folder, name), text.replaceAll('"../src/', '"../'));
  }
}

/** `callnumber explain` prints it. */
function copyErrorReference() {
  cpSync(join(ROOT, "docs", "reference", "errors.md"), join(ROOT, "packages", "cli", "dist", "commands", "errors.md"));
}

/** The operators' page: only when one of its inputs has changed. */
async function buildConsole() {
  const inputs = hashOfConsoleInputs();
  if (existsSync(CONSOLE_STAMP) && readFileSync(CONSOLE_STAMP, "utf8") === inputs && existsSync(BUILT_CONSOLE)) return;
  rmSync(CONSOLE_STAMP, { force: true });
  const vite = join(ROOT, CONSOLE, "node_modules", "vite", "bin", "vite.js");
  await run(process.execPath, [vite, "build", "--logLevel", "warn", join(ROOT, CONSOLE)], {
    advice: ["The console was not built. The output above has the reason."],
  });
  writeFileSync(CONSOLE_STAMP, inputs);
  console.log("Built the console.");
}

/** Its own files, what it takes from the protocol, and the versions of what it is built with. */
function hashOfConsoleInputs() {
  const hash = createHash("sha256");
  for (const folder of [CONSOLE, join("packages", "protocol", "src")]) {
    const names = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
      .filter((name) => !/[\\/](node_modules|dist)[\\/]/.test(name));
    for (const name of names.sort()) hash.update(`${name}\n${read(name)}\n`);
  }
  hash.update(read("pnpm-lock.yaml"));
  return hash.digest("hex");
}

/** Everything that decides what an install puts into node_modules. */
function hashOfInstallInputs() {
  const hash = createHash("sha256");
  hash.update(`${process.platform} ${process.arch} node ${process.versions.node.split(".")[0]}\n`);
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json", ...packageManifests()]) {
    hash.update(`${file}\n${read(file)}\n`);
  }
  return hash.digest("hex");
}

/** The manifests of all workspace packages. Only the two spellings this workspace uses are read: `folder/*` and `folder`. */
function packageManifests() {
  const [, list] = read("pnpm-workspace.yaml").match(/^packages:\n((?:\s+- .*\n)+)/m);
  return list
    .split("\n")
    .map((line) => line.replace(/^\s+- /, "").replace(/["']/g, ""))
    .filter(Boolean)
    .flatMap((pattern) => (pattern.endsWith("/*") ? foldersIn(pattern.slice(0, -2)) : [pattern]))
    .map((folder) => `${folder}/package.json`)
    .filter((file) => existsSync(join(ROOT, file)))
    .sort();
}

function foldersIn(folder) {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`);
}

function environmentWithoutNpm() {
  const entries = Object.entries(process.env);
  return Object.fromEntries(
    entries.filter(([name]) => !/^npm_/i.test(name) || NPM_SETTINGS_KEPT.test(name.toLowerCase().replaceAll("-", "_"))),
  );
}

/** Runs one step quietly and resolves to its output. When it fails: shows all of it, then the advice, and exits as the step did. */
function run(command, args, { env = process.env, shell = false, advice }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, env, shell, stdio: ["ignore", "pipe", "pipe"] });
    const chunks = [];
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.stderr.on("data", (chunk) => chunks.push(chunk));

    let interruptedBy;
    const passOn = (signal) => {
      interruptedBy = signal;
      child.kill(signal);
    };
    for (const signal of SIGNALS_PASSED_ON) process.on(signal, passOn);

    child.on("error", (error) => fail(`${command} could not be started: ${error.message}`, ...advice));
    child.on("close", (code, signal) => {
      for (const name of SIGNALS_PASSED_ON) process.off(name, passOn);
      const output = Buffer.concat(chunks).toString();
      if (code === 0) return resolve(output);
      if (interruptedBy) process.exit(128 + constants.signals[interruptedBy]);
      process.stderr.write(output.replace(/^TSFILE: .*\n/gm, ""));
      if (signal) console.error(`${command} was ended by ${signal}.`);
      console.error(["", ...advice].join("\n"));
      process.exit(code ?? 128 + constants.signals[signal]);
    });
  });
}

function fail(...lines) {
  console.error(lines.join("\n"));
  process.exit(1);
}

function read(file) {
  return readFileSync(join(ROOT, file), "utf8");
}
