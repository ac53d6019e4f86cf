/**
 * `npm run pack [-- DIRECTORY]`: the publishable packages as tarballs, by default in dist/. The libraries keep their dependencies. The
 * command is bundled with all of its own, unminified: it installs without other packages, and starts sooner.
 */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { manPage } from "./man-page.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PACKAGES = join(ROOT, "packages");
const LIBRARIES = ["protocol", "client", "schemes", "coordinator"];
const COORDINATOR = join(PACKAGES, "coordinator");
const SQLITE = realpathSync(join(COORDINATOR, "node_modules", "@photostructure", "sqlite"));
const CONSOLE_PACKAGES = [realpathSync(join(PACKAGES, "console", "node_modules", "preact"))];

/** npm puts it where `man callnumber` finds it, in a global installation. */
const MANUAL = join("man", "callnumber.1");

const target = resolve(process.argv[2] ?? join(ROOT, "dist"));
const work = mkdtempSync(join(tmpdir(), "callnumber-pack-"));
try {
  mkdirSync(target, { recursive: true });
  for (const name of LIBRARIES) pack(unpacked(name));
  pack(await bundled(unpacked("cli")));
} finally {
  rmSync(work, { recursive: true });
}

/** Returns a directory with what npm would publish of a package. Dependencies in the workspace get their versions. */
function unpacked(name) {
  const directory = join(work, name);
  mkdirSync(directory);
  const tarball = join(work, npmPack(join(PACKAGES, name), work));
  execFileSync("tar", ["-xf", tarball, "--strip-components=1"], { cwd: directory });
  editManifest(directory, ({ private: _private, devDependencies: _dev, dependencies = {}, ...manifest }) => ({
    ...manifest,
    publishConfig: { access: "public" },
    dependencies: Object.fromEntries(
      Object.entries(dependencies).map(([key, range]) => [key, range.replace("workspace:*", manifest.version)]),
    ),
  }));
  return directory;
}

function pack(directory) {
  console.log(join(target, npmPack(directory, target)));
}

function npmPack(directory, destination) {
  const options = ["--silent", "--ignore-scripts", "--pack-destination", destination];
  return execFileSync("npm", ["pack", ...options], { cwd: directory, encoding: "utf8" }).trim();
}

function readManifest(directory) {
  return JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
}

function editManifest(directory, edit) {
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(edit(readManifest(directory)), null, 2)}\n`);
}

/** Puts the command and its dependencies into dist/, with the files that they read while they run, and their licenses. */
async function bundled(directory) {
  const outdir = join(directory, "dist");
  rmSync(outdir, { recursive: true });
  const { metafile } = await build({
    entryPoints: [join(PACKAGES, "cli", "dist", "main.js")],
    outdir,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    metafile: true,
    logLevel: "warning",
    absWorkingDir: ROOT,
    // For the dependencies that are CommonJS.
    banner: {
      js: 'import { createRequire as requireOf } from "node:module";\nconst require = requireOf(import.meta.url);',
    },
    plugins: [{ name: "places", setup: ({ onLoad }) => onLoad({ filter: /coordinator.dist.*\.js$/ }, placed) }],
  });
  cpSync(join(COORDINATOR, "lua"), join(directory, "lua"), { recursive: true });
  cpSync(join(COORDINATOR, "dist", "console"), join(outdir, "console"), { recursive: true });
  cpSync(join(ROOT, "docs", "reference", "errors.md"), join(outdir, "errors.md"));
  cpSync(join(SQLITE, "prebuilds"), join(directory, "prebuilds"), { recursive: true });
  writeFileSync(join(directory, "LICENSES.md"), licensesOf(Object.keys(metafile.inputs)));
  mkdirSync(join(directory, "man"));
  writeFileSync(join(directory, MANUAL), await manPage());
  editManifest(directory, ({ dependencies: _bundled, exports: _exports, files, ...manifest }) => ({
    ...manifest,
    // npm ignores a text here.
    man: [`./${MANUAL}`],
    files: [...files, "lua", "man", "prebuilds", "LICENSES.md"],
  }));
  return directory;
}

/** A module of the coordinator finds its files as if it were still in its own directory below dist/. */
function placed({ path }) {
  const place = relative(join(COORDINATOR, "dist"), path).split(sep).join("/");
  const url = `new URL(${JSON.stringify(place)}, import.meta.url).href`;
  return { contents: readFileSync(path, "utf8").replaceAll("import.meta.url", url), loader: "js" };
}

/** Name, version, license and its text, of each package that the bundle or the console contains. */
function licensesOf(inputs) {
  const directories = new Set([...CONSOLE_PACKAGES, ...inputs.map((input) => packageOf(join(ROOT, input)))]);
  const others = [...directories].filter((directory) => !directory.startsWith(PACKAGES));
  const texts = others.map((directory) => {
    const { name, version, license } = readManifest(directory);
    const file = readdirSync(directory).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? "" : `\n${readFileSync(join(directory, file), "utf8").trim()}\n`;
    return `## ${name} ${version}\n\n${license}\n${text}`;
  });
  return `# Licenses of the packages in this one\n\n${texts.sort().join("\n")}`;
}

/** The directory of the package that a module belongs to: the nearest one above it with a named manifest. */
function packageOf(path) {
  for (let directory = dirname(path); ; directory = dirname(directory))
    if (existsSync(join(directory, "package.json")) && readManifest(directory).name !== undefined) return directory;
}
