/**
 * `npm run pack [-- DIRECTORY]`: the publishable packages as tarballs, by default in dist/. The libraries keep their dependencies. Each
 * command is bundled with all of its own, unminified: it installs without other packages, and starts sooner. The Python client goes into
 * `python/` below.
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
import { packPython } from "./pack-python.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PACKAGES = join(ROOT, "packages");
const LIBRARIES = ["protocol", "client", "schemes", "coordinator"];
const COORDINATOR = join(PACKAGES, "coordinator");
/** By package: the programs, without their endings, and the package whose modules read files next to them. */
const COMMANDS = {
  cli: { programs: ["main"], reading: "coordinator", addFiles: addFilesOfCli },
  archive: {
    programs: ["main", "importing/worker", "reader/mail-worker"],
    reading: "archive",
    addFiles: () => ({}),
  },
};
const SQLITE = realpathSync(join(COORDINATOR, "node_modules", "@photostructure", "sqlite"));
const CONSOLE_PACKAGES = [realpathSync(join(PACKAGES, "console", "node_modules", "preact"))];

/** npm puts it where `man callnumber` finds it, in a global installation. */
const MANUAL = join("man", "callnumber.1");

const target = resolve(process.argv[2] ?? join(ROOT, "dist"));
const work = mkdtempSync(join(tmpdir(), "callnumber-pack-"));
try {
  mkdirSync(target, { recursive: true });
  for (const name of LIBRARIES) pack(unpacked(name));
  for (const [name, command] of Object.entries(COMMANDS)) pack(await bundled(name, unpacked(name), command));
  for (const path of packPython(target)) console.log(path);
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

/** Puts a command and its dependencies into dist/, with the files that they read while they run, and their licenses. */
async function bundled(name, directory, { programs, reading, addFiles }) {
  const [built, outdir] = [join(PACKAGES, name, "dist"), join(directory, "dist")];
  rmSync(outdir, { recursive: true });
  // Style sheets and the like, which a module reads.
  cpSync(built, outdir, { recursive: true, filter: (path) => !/\.(?:[jt]s|map|tsbuildinfo)$/.test(path) });
  const { metafile } = await build({
    entryPoints: programs.map((program) => join(built, `${program}.js`)),
    outbase: built,
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
    plugins: [placesIn(join(PACKAGES, reading, "dist"))],
  });
  cpSync(join(SQLITE, "prebuilds"), join(directory, "prebuilds"), { recursive: true });
  const added = await addFiles(directory, outdir);
  writeFileSync(join(directory, "LICENSES.md"), licensesOf(Object.keys(metafile.inputs), added.packages));
  editManifest(directory, ({ dependencies: _bundled, exports: _exports, files, ...manifest }) => ({
    ...manifest,
    ...added.manifest,
    files: [...files, "prebuilds", "LICENSES.md", ...(added.files ?? [])],
  }));
  return directory;
}

async function addFilesOfCli(directory, outdir) {
  for (const name of ["lua", "sql"]) cpSync(join(COORDINATOR, name), join(directory, name), { recursive: true });
  cpSync(join(COORDINATOR, "dist", "console"), join(outdir, "console"), { recursive: true });
  cpSync(join(ROOT, "docs", "reference", "errors.md"), join(outdir, "errors.md"));
  mkdirSync(join(directory, "man"));
  writeFileSync(join(directory, MANUAL), await manPage());
  // npm ignores a text here.
  return { packages: CONSOLE_PACKAGES, files: ["lua", "sql", "man"], manifest: { man: [`./${MANUAL}`] } };
}

/** A module finds its files as if it were still in its own directory below `dist`. */
function placesIn(dist) {
  const placed = ({ path }) => {
    if (!path.startsWith(dist + sep)) return undefined;
    const place = relative(dist, path).split(sep).join("/");
    const url = `new URL(${JSON.stringify(place)}, import.meta.url).href`;
    return { contents: readFileSync(path, "utf8").replaceAll("import.meta.url", url), loader: "js" };
  };
  return { name: "places", setup: ({ onLoad }) => onLoad({ filter: /\.js$/ }, placed) };
}

/** Name, version, license and its text, of each package that the bundle contains, and of others. */
function licensesOf(inputs, packages = []) {
  const directories = new Set([...packages, ...inputs.map((input) => packageOf(join(ROOT, input)))]);
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
