/**
 * The examples of docs/storing-call-numbers.md, so that what the document says is what was run: statements are blocks
 * "sql ENGINE:NAME", what came back is the block "text ENGINE:NAME". Knows nothing of databases.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../processes/command.js";

const DOCUMENT = join(REPOSITORY, "docs", "storing-call-numbers.md");
const BLOCK = /^```(sql|text) (\w+):([\w-]+)\n([\s\S]*?)^```$/gm;
const COLUMN_GAP = /\s{3,}/;

export type Engine = "mariadb" | "postgres" | "sqlite";

export class DocumentExamples {
  readonly #statements = new Map<string, string>();
  readonly #results = new Map<string, string>();
  readonly #unused = new Set<string>();

  /** Those of one engine. @throws Error when a name stands twice, as one of the two would not be run. */
  constructor(engine: Engine) {
    for (const [, kind = "", ofEngine, name = "", text = ""] of readFileSync(DOCUMENT, "utf8").matchAll(BLOCK)) {
      if (ofEngine !== engine) continue;
      const blocks = kind === "sql" ? this.#statements : this.#results;
      if (blocks.has(name)) throw new Error(`docs/storing-call-numbers.md has two blocks ${kind} ${engine}:${name}`);
      blocks.set(name, text);
      this.#unused.add(`${kind} ${name}`);
    }
  }

  /** The statements of the example. @throws Error when the document has none. */
  sql(name: string): string {
    return this.#taken("sql", this.#statements, name);
  }

  /** The rows that the document shows below the example. @throws Error when it shows none. */
  rows(name: string): string[][] {
    const lines = this.#taken("text", this.#results, name).trimEnd().split("\n");
    return lines.map((line) => line.split(COLUMN_GAP));
  }

  /** What no test has asked for: claims that nobody tried. */
  get unused(): string[] {
    return [...this.#unused];
  }

  #taken(kind: string, blocks: ReadonlyMap<string, string>, name: string): string {
    const text = blocks.get(name);
    if (text === undefined) throw new Error(`docs/storing-call-numbers.md has no block ${kind} …:${name}`);
    this.#unused.delete(`${kind} ${name}`);
    return text;
  }
}

/** Every block with statements that the document has, by engine; one of no known engine would never be run. */
export function enginesInDocument(): string[] {
  const text = readFileSync(DOCUMENT, "utf8");
  return [...text.matchAll(/^```(?:sql|text)(.*)$/gm)].map(([, of = ""]) => of.trim().split(":")[0] ?? "");
}
