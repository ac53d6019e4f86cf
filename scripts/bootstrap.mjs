/**
 * Makes a fresh clone ready to run: dependencies installed, TypeScript built, the console built. `npm install` and the npm scripts begin here.
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

/** The npm script that was typed, where it names this one: a script that goes on with something else runs `npm run -s bootstrap`. */
const TYPED = process.env.npm_config_loglevel === "silent" ? undefined : process.env.npm_lifecycle_event;

const IS_TERMINAL = process.stdout.isTTY === true && process.env.TERM !== "dumb";
const PACKAGES = /^Packages: \+(\d+)/m;
const PROGRESS = /^Progress: resolved \d+, reused \d+, downloaded \d+, added \d+/gm;
const REDRAW_MS = 200;
/** In a log each wait is twice as long as the one before, so that an hour is a dozen lines. */
const FIRST_LINE_MS = 3_000;

// For npx, npm links the root into its cache, and runs `prepare` unseen: there it would install for minutes without a word.
if (TYPED === "prepare" && process.env.npm_command === "exec") process.exit();

const manifest = JSON.parse(read("package.json"));

refuseOldNode();
await install();
await build();
placeContract();
copyErrorReference();
await buildConsole();
if (["prepare", "bootstrap", "build"].includes(TYPED)) {
  console.log("Ready: npm start runs a coordinator, npm run demo shows an archive.");
}

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
  const start = Date.now();
  const output = await run("npx", ["--yes", pnpm, "install", "--prefer-offline", "--ignore-scripts"], {
    progress: installed,
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
  const [, count = "the"] = PACKAGES.exec(output) ?? [];
  console.log(`Installed ${count} ${count === "1" ? "package" : "packages"} in ${secondsSince(start)} s.`);
}

/** How far pnpm has come. */
function installed(output) {
  const [, total] = PACKAGES.exec(output) ?? [];
  const [, reused, downloaded, added] = output.match(PROGRESS)?.at(-1)?.match(/\d+/g) ?? [];
  if (total === undefined || added === undefined) return "Starting pnpm";
  const fetched = Number(reused) + Number(downloaded);
  return fetched < Number(total) ? `Fetched ${fetched} of ${total} packages` : `Linked ${added} of ${total} packages`;
}

async function build() {
  const output = await run(process.execPath, [TSC, "--build", "--listEmittedFiles", ".", CONTRACT], {
    progress: () => "Building the TypeScript",
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
    progress: () => "Building the console",
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
    // With NODE_ENV=production, which npm sets for --omit=dev, pnpm would leave out the compiler.
    entries.filter(
      ([name]) => !/^(npm_|NODE_ENV$)/i.test(name) || NPM_SETTINGS_KEPT.test(name.toLowerCase().replaceAll("-", "_")),
    ),
  );
}

/**
 * Runs one step and resolves to its output. Shows only how far it has come, in the words of `progress`. When it fails: shows the whole
 * output, then the advice, and exits as the step did.
 */
function run(command, args, { env = process.env, shell = false, progress, advice }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, env, shell, stdio: ["ignore", "pipe", "pipe"] });
    const chunks = [];
    const endProgress = showProgress(() => progress(Buffer.concat(chunks).toString()));
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.stderr.on("data", (chunk) => chunks.push(chunk));

    let interruptedBy;
    const passOn = (signal) => {
      interruptedBy = signal;
      child.kill(signal);
    };
    for (const signal of SIGNALS_PASSED_ON) process.on(signal, passOn);

    child.on("error", (error) => {
      endProgress();
      fail(`${command} could not be started: ${error.message}`, ...advice);
    });
    child.on("close", (code, signal) => {
      endProgress();
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

/** On a terminal, one line that changes; in a log, a line now and then. Returns what ends it. */
function showProgress(words) {
  const start = Date.now();
  const line = () => `${words()}: ${secondsSince(start)} s`;
  if (IS_TERMINAL) {
    const draw = () => process.stdout.write(`\r\x1b[K${line().slice(0, (process.stdout.columns || 80) - 1)}`);
    draw();
    const timer = setInterval(draw, REDRAW_MS);
    return () => {
      clearInterval(timer);
      process.stdout.write("\r\x1b[K");
    };
  }
  let timer;
  const showAfter = (waitMs) => {
    timer = setTimeout(() => {
      console.log(`  ${line()}`);
      showAfter(2 * waitMs);
    }, waitMs);
  };
  showAfter(FIRST_LINE_MS);
  return () => clearTimeout(timer);
}

function secondsSince(start) {
  return Math.round((Date.now() - start) / 1_000);
}

function fail(...lines) {
  console.error(lines.join("\n"));
  process.exit(1);
}

function read(file) {
  return readFileSync(join(ROOT, file), "utf8");
}
