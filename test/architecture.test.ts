/** The import directions: a failure names the rule, and its reason. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "./processes/command.js";

interface SourceFile {
  /** From the repository's root, with forward slashes. */
  readonly path: string;
  readonly imports: readonly string[];
  readonly text: string;
}

interface Rule {
  readonly because: string;
  readonly files: RegExp;
  /** Relative imports are seen as paths from the root, without the extension. */
  readonly allowed?: RegExp;
  readonly forbidden?: RegExp;
}

const RULES: readonly Rule[] = [
  {
    because: "a reader that only decodes loads a few kilobytes: the codec imports its own files, nothing else",
    files: /^packages\/protocol\/src\/(codec|layout|quoted)\./,
    allowed: /^packages\/protocol\/src\/(layout|quoted)$/,
  },
  {
    because:
      "client and browser import the API, which has no dependency, not even a type of zod: an importer need not have it",
    files: /^packages\/protocol\/src\/(?!.*schemas\.)/,
    allowed: /^packages\/protocol\/src\/(?!.*schemas$)/,
  },
  {
    because:
      "the schemes compute: of the protocol they know the codec only, and of the platform nothing, so a browser can have them",
    files: /^packages\/schemes\/src\/(?!commands\/)/,
    allowed: /^(packages\/schemes\/src\/(?!commands\/).*|@callnumber\/protocol\/codec)$/,
  },
  {
    because:
      "the commands about numbering schemes start at once, and are given what prints: no store, no server, no client, no schema library",
    files: /^packages\/schemes\/src\/commands\//,
    allowed:
      /^(packages\/schemes\/src\/.*|@callnumber\/protocol\/codec|commander|node:(crypto|fs|os|path|process|timers\/promises))$/,
  },
  {
    because:
      "the client stays tiny: protocol's /codec and /api, the platform, nothing else; and it never knows a coordinator",
    files: /^packages\/client\/src\//,
    allowed: /^(packages\/client\/src\/.*|@callnumber\/protocol\/(codec|api)|node:(os|process|timers|v8))$/,
  },
  {
    because: "the rules of the coordinator know ports only: no HTTP, no store",
    // index.ts, operator.ts, store.ts and internal.ts export what others use.
    files:
      /^packages\/coordinator\/src\/((?!(index|internal|operator|store)\.ts$)[a-z-]+\.ts$|(events|inspect|ledger|status)\/)/,
    forbidden:
      /^(packages\/coordinator\/src\/(http|stores)\/(?!server$|store$|open-store$|store-url$)|fastify|ioredis|@photostructure)/,
  },
  {
    because: "http answers for a coordinator and never reaches past it into a store",
    files: /^packages\/coordinator\/src\/http\//,
    forbidden: /^packages\/coordinator\/src\/stores\/|ioredis|@photostructure/,
  },
  {
    because:
      "stores know the port, what a step compares, the store id, errors, safe texts, paths and private files, and no rule of a step",
    files: /^packages\/coordinator\/src\/stores\//,
    allowed:
      /^(packages\/coordinator\/src\/(stores\/.*|ledger\/lease-identity|errors|text|platform\/.*|guard\/(clocks|checks|record|refusals|restart-decision|step-store|store-id|verify-outcome))|@callnumber\/protocol\/(codec|api|schemas)|node:.*|ioredis|pg|pgpass|@photostructure\/sqlite)$/,
  },
  {
    because:
      "the guard, the operator's verbs and what trims a ledger know ports only: they hold for every store, a simulated one too",
    files: /^packages\/coordinator\/src\/(guard|operator|retention)\//,
    forbidden: /^packages\/coordinator\/src\/(stores\/(?!store$)|http\b|coordinator\b)|ioredis|@photostructure|fastify/,
  },
  {
    because: "the guard's decisions are pure: the same in a store, in a script, in a simulation",
    files:
      /^packages\/coordinator\/src\/guard\/(ceiling|checkpoint|checks|clocks|decide|guard-state|record|refusals|restart-decision|store-id|verify-outcome)\./,
    forbidden: /^node:(?!crypto$)/,
  },
  {
    because:
      "a token identifies a client: what it is kept in and compared with knows no store, no lease and no command",
    files: /^packages\/coordinator\/src\/tokens\//,
    allowed:
      /^(packages\/coordinator\/src\/(tokens\/.*|http\/auth|platform\/(private-file|real-path))|@callnumber\/protocol\/(api|schemas)|node:.*|fastify|zod)$/,
  },
  {
    because: "metrics are what the coordinator reports of itself: they never reach past it",
    files: /^packages\/coordinator\/src\/metrics\//,
    allowed:
      /^(packages\/coordinator\/src\/(metrics\/.*|events\/events|status\/status)|@callnumber\/protocol\/(api|schemas)|node:process|prom-client)$/,
  },
  {
    because: "only the Redis adapter knows the Redis client",
    files: /^(packages|examples)\/(?!coordinator\/src\/stores\/redis\/connection\.)/,
    forbidden: /^(ioredis|redis)$/,
  },
  {
    because: "only the PostgreSQL adapter knows its driver",
    files: /^packages\/(?!coordinator\/src\/stores\/postgres\/connection\.)/,
    forbidden: /^(pg|pgpass|postgres)$/,
  },
  {
    because: "only the embedded store and the archive know SQLite",
    files: /^packages\/(?!coordinator\/src\/stores\/sqlite\/|archive\/)/,
    forbidden: /^(@photostructure\/sqlite|node:sqlite)$/,
  },
  {
    because:
      "the coordinator is a library: no command line, no client (it fits the client's LeaseSource by shape), no log writer",
    files: /^packages\/coordinator\/src\/(?!numbers\/)/,
    forbidden: /^(@callnumber\/(client|schemes)|callnumber|commander|pino)/,
  },
  {
    because:
      "numbers for requests are made by a client like any other (ADR 0020): it is given a lease source, and knows no store, no guard and no HTTP",
    files: /^packages\/coordinator\/src\/numbers\//,
    allowed:
      /^(packages\/coordinator\/src\/(numbers\/.*|errors|log)|@callnumber\/(client|protocol\/(api|codec|schemas)))$/,
  },
  {
    because:
      "commands that need no coordinator start at once: encode and decode load no store, no server and no schema library",
    files: /^packages\/cli\/src\/(commands\/(encode|decode)|input|output|invocation|run|main)\./,
    allowed:
      /^(packages\/cli\/src\/(input|output|invocation|program|run)|@callnumber\/(coordinator\/internal\/text|protocol\/(api|codec))|commander|node:(async_hooks|events|module|process|stream|tty|util))$/,
  },
  {
    because:
      "what mounts the commands about numbering schemes, and what it gives them, loads no store, no server, no client, no schema library",
    files: /^packages\/cli\/src\/(commands\/schemes|table)\./,
    allowed:
      /^(packages\/cli\/src\/(invocation|input|output|table)|@callnumber\/(coordinator\/internal\/(machine|text)|schemes\/commands)|commander|node:(fs|process))$/,
  },
  {
    because: "only serve loads the HTTP server: other commands act on a store, or on a coordinator over HTTP",
    files: /^packages\/cli\/src\/(?!serve\/|signals\.)/,
    forbidden: /^@callnumber\/coordinator$/,
  },
  {
    because: "the command line uses the other packages by their public names",
    files: /^packages\/cli\/src\//,
    forbidden: /^packages\/(?!cli\/)/,
  },
  {
    because: "an internal entry is for the command alone, so that it may change in any release",
    files: /^packages\/(?!cli\/)/,
    forbidden: /^@callnumber\/[a-z]+\/internal\b/,
  },
  {
    because: "nothing depends on the command line: it stands on top",
    files: /^packages\/(?!cli\/)/,
    forbidden: /^(packages\/cli\/|callnumber$)/,
  },
  {
    because:
      "the page in a browser takes what is agreed from the protocol, draws with one small library, and knows nothing of a coordinator's insides",
    files: /^packages\/console\/src\//,
    allowed: /^(packages\/console\/src\/.*|@callnumber\/protocol\/(codec|api|schemas)|preact|preact\/hooks)$/,
  },
  {
    because: "what the page says of a number, an event or a code is pure: it is tested without a browser",
    files: /^packages\/console\/src\/(call-number|format|format-event)\./,
    forbidden: /^preact|^packages\/console\/src\/(event-stream|api|route|use-response)$|\/(parts|pages)\//,
  },
  {
    because: "the archive uses what a user can use: the other packages by their public names",
    files: /^packages\/archive\//,
    forbidden: /^packages\/(?!archive\/)|^@callnumber\/[a-z]+\/internal\b/,
  },
];

/** Only what a person starts may read the environment or end the process; the client's options have one variable, as commands do. */
const STARTED_BY_PEOPLE = /^(packages\/cli\/src\/main\.|packages\/client\/src\/options\.|packages\/archive\/)/;
const ENVIRONMENT_OR_EXIT = /process\.(env|exit\b)|\b(env|exit|argv)\b[^;]*from "node:process"/;

/** What a process has once, where several commands may run in it. */
const OWN_PROCESS = /\b(console|process)\.\w|^import (?!\{ (pid|platform) \}).* from "node:process"/m;

const packages = readdirSync(join(REPOSITORY, "packages")).map((name) => `packages/${name}`);
const sources = packages.flatMap((name) => sourceFiles(join(REPOSITORY, name, "src")));

describe("the architecture", () => {
  test("the sources are found", () => {
    expect(sources.length).toBeGreaterThan(50);
    const lease = sources.find(({ path }) => path === "packages/client/src/client.ts");
    expect(lease?.imports).toEqual(
      expect.arrayContaining(["@callnumber/protocol/codec", "packages/client/src/lease-buffer"]),
    );
  });

  test.each(RULES.map((rule) => [rule.because, rule] as const))("%s", (because, { files, allowed, forbidden }) => {
    const subjects = sources.filter(({ path }) => files.test(path));
    expect(subjects.length, `no file is meant by ${files}`).toBeGreaterThan(0);
    const breaches = subjects.flatMap(({ path, imports }) =>
      imports
        .filter((name) => (allowed !== undefined && !allowed.test(name)) || forbidden?.test(name))
        .map((name) => `${path} imports ${name}`),
    );
    expect(breaches, because).toEqual([]);
  });

  test("only what a person starts reads the environment or ends the process", () => {
    const breaches = sources.filter(
      ({ path, text }) => !STARTED_BY_PEOPLE.test(path) && ENVIRONMENT_OR_EXIT.test(text),
    );
    expect(breaches.map(({ path }) => path)).toEqual([]);
    expect(sources.some(({ path, text }) => STARTED_BY_PEOPLE.test(path) && ENVIRONMENT_OR_EXIT.test(text))).toBe(true);
  });

  test("only main.ts knows the process of the command: the others are given streams, environment and signals", () => {
    const command = sources.filter(({ path }) => /^packages\/(cli\/src|schemes\/src\/commands)\//.test(path));
    const found = command.filter(({ text }) => OWN_PROCESS.test(text)).map(({ path }) => path);
    // The library of completion prints on the console: what it prints is taken there.
    expect(found.sort()).toEqual(["packages/cli/src/commands/complete.ts", "packages/cli/src/main.ts"]);
  });

  test("a page in a browser loads no zod: the console takes types only from the schemas", () => {
    const readers = sources.filter(({ path }) => path.startsWith("packages/console/src/"));
    const statements = readers.flatMap(({ text }) => text.split(/(?=^(?:import|export) )/m));
    const ofSchemas = statements.filter((statement) => statement.includes('"@callnumber/protocol/schemas"'));
    expect(ofSchemas).not.toEqual([]);
    for (const statement of ofSchemas) expect(statement).toMatch(/^import type /);
  });

  test("the command loads a sub-command only when it is asked for", () => {
    const text = (name: string) => sources.find(({ path }) => path === `packages/cli/src/${name}`)?.text;
    expect(text("commands.ts")).toMatch(/import\("\.\/commands\/decode\.js"\)/);
    for (const name of ["commands.ts", "program.ts"]) expect(text(name)).not.toMatch(/from "\.\/commands\//);
  });

  test("no import goes round in a circle", () => {
    const importsOf = new Map(sources.map(({ path, imports }) => [path.replace(/\.tsx?$/, ""), imports]));
    const done = new Set<string>();
    const visit = (name: string, way: readonly string[]): void => {
      if (way.includes(name)) expect.fail(`circle: ${[...way.slice(way.indexOf(name)), name].join(" → ")}`);
      if (done.has(name)) return;
      for (const next of importsOf.get(name) ?? []) visit(next, [...way, name]);
      done.add(name);
    };
    for (const name of importsOf.keys()) visit(name, []);
  });

  test("every file begins with a comment that describes it", () => {
    const silent = sources.filter(({ path, text }) => !text.startsWith("/**") && !path.endsWith("/index.ts"));
    expect(silent.map(({ path }) => path)).toEqual([]);
  });
});

function sourceFiles(folder: string): SourceFile[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => {
      const path = relative(REPOSITORY, join(folder, name)).replaceAll("\\", "/");
      const text = readFileSync(join(folder, name), "utf8");
      // Types alone leave no trace at run time, but they are knowledge too: they count.
      const specifiers = [...text.matchAll(/(?<!")\b(?:from|import)\s*\(?\s*"([^"\s]+)"/g)].map(
        ([, name_]) => name_ as string,
      );
      return { path, text, imports: specifiers.map((specifier) => fromRoot(path, specifier)) };
    });
}

function fromRoot(path: string, specifier: string): string {
  if (!specifier.startsWith(".")) return specifier;
  return join(path, "..", specifier).replaceAll("\\", "/").replace(/\.js$/, "");
}
