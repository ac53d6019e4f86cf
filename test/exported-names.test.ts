/** What a package exports is documented: by a comment where it is declared, or by name in a document. An entry `/internal` is not for users. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "./processes/command.js";

const PACKAGES = ["protocol", "client", "schemes", "coordinator"];
/** The names of this one are in its README, too: it has no page of reference. */
const WITHOUT_REFERENCE = "coordinator";

const DECLARATION =
  /(\*\/\n(?:\/\/.*\n)?)?^export (?:async )?(?:class|function\*?|const|interface|type) (\w+)(.* = (?:z\.infer<|keyof typeof |\(typeof |described\w+\())?/gm;
const EXPORTED_LIST = /^export (?:type )?\{([^}]*)\} from "([^"]+)"/gm;
const LISTED = /(?:type )?(\w+)(?: as (\w+))?,?/g;
const EXPORTED_FILE = /^export \* from "([^"]+)"/gm;
/** Declared in another package, in which its own entries are examined. */
const EXPORTED_IMPORT = /^export type \{ (\w+) \};/gm;

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const reference = readdirSync(join(REPOSITORY, "docs/reference")).map((name) => codeIn(read(`docs/reference/${name}`)));

interface Entry {
  readonly name: string;
  /** Of its sources, from the repository's root. */
  readonly source: string;
}

const entries = PACKAGES.flatMap(entriesOf);

describe.each(entries)("$name", ({ name, source }) => {
  const exported = [...namesIn(source)];
  const readme = codeIn(read(`packages/${packageOf(name)}/README.md`));

  test("exports no name that is documented nowhere", () => {
    expect(exported.length).toBeGreaterThan(0);
    const documents = [...reference, readme];
    const silent = exported.filter(
      ([exportedName, isDescribed]) => !isDescribed && !documents.some((code) => isNamedIn(code, exportedName)),
    );
    expect(silent.map(([exportedName]) => exportedName)).toEqual([]);
  });
});

describe.each(entries.filter(({ name }) => packageOf(name) === WITHOUT_REFERENCE))("$name", ({ name, source }) => {
  test("describes each name that it exports, and its README names it", () => {
    const readme = codeIn(read(`packages/${packageOf(name)}/README.md`));
    const missing = [...namesIn(source)].filter(
      ([exportedName, isDescribed]) => !isDescribed || !isNamedIn(readme, exportedName),
    );
    expect(missing.map(([exportedName]) => exportedName)).toEqual([]);
  });
});

test("the entries are found, and no package but these has some", () => {
  expect(entries.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["@callnumber/coordinator", "@callnumber/coordinator/operator", "@callnumber/client"]),
  );
  const others = readdirSync(join(REPOSITORY, "packages")).filter((name) => !PACKAGES.includes(name));
  expect(others.sort()).toEqual(["archive", "cli", "console"]);
});

function entriesOf(name: string): Entry[] {
  const { exports } = JSON.parse(read(`packages/${name}/package.json`)) as {
    exports: Record<string, { readonly default: string }>;
  };
  return Object.entries(exports)
    .filter(([entry]) => !entry.startsWith("./internal"))
    .map(([entry, { default: built }]) => ({
      name: join("@callnumber", name, entry),
      source: join(
        "packages",
        name,
        sourceOf(built.replace("./dist/contract/", "./test/").replace("./dist/", "./src/")),
      ),
    }));
}

/**
 * Returns each exported name, and whether it is described where it is declared. A type that follows from a value needs no words of its own, and
 * an object of the API has its text.
 */
function namesIn(source: string): Map<string, boolean> {
  const text = read(source);
  const names = new Map<string, boolean>();
  for (const [, comment, name = "", follows] of text.matchAll(DECLARATION)) {
    names.set(name, comment !== undefined || follows !== undefined);
  }
  for (const [, from = ""] of text.matchAll(EXPORTED_FILE)) {
    for (const [name, isDescribed] of namesIn(sourceFrom(source, from))) names.set(name, isDescribed);
  }
  for (const [, list = "", from = ""] of text.matchAll(EXPORTED_LIST)) {
    const declared = namesIn(sourceFrom(source, from));
    for (const [, name = "", exportedAs = name] of list.matchAll(LISTED)) {
      names.set(exportedAs, declared.get(name) ?? false);
    }
  }
  for (const [, name = ""] of text.matchAll(EXPORTED_IMPORT)) names.set(name, true);
  return names;
}

function sourceFrom(source: string, specifier: string): string {
  const [, ofProtocol] = /^@callnumber\/protocol\/(.+)$/.exec(specifier) ?? [];
  return ofProtocol === undefined
    ? join(dirname(source), sourceOf(specifier))
    : `packages/protocol/src/${ofProtocol}.ts`;
}

function sourceOf(built: string): string {
  return built.replace(/\.js$/, ".ts");
}

/** Of `@callnumber/coordinator/operator`: `coordinator`. */
function packageOf(entry: string): string {
  return entry.split("/")[1] as string;
}

/** What a document has between backquotes, joined. */
function codeIn(text: string): string {
  return [...text.matchAll(/`[^`\n]+`/g)].map(([code]) => code).join("\n");
}

/** As a word of its own. */
function isNamedIn(code: string, name: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(code);
}
