/** The reference of errors that the package contains: docs/reference/errors.md, which the build copies. */
import { readFileSync } from "node:fs";

export interface ErrorEntry {
  readonly code: string;
  /** HTTP status and retry rule; or what reports it. */
  readonly kind: string;
  readonly cause: string;
  readonly fix: string;
}

/** Returns an entry for each code, in the order of the page. */
export function errorEntries(): readonly ErrorEntry[] {
  const [, ...sections] = readFileSync(new URL("./errors.md", import.meta.url), "utf8").split(/^### /m);
  return sections.map((section) => {
    const entry = /^`([a-z_]+)` (.*?)\. (.*) \*\*Fix:\*\* (.*)$/.exec(plainText(section));
    if (entry === null) throw new Error(`the reference of errors has an entry without cause and fix: ${section}`);
    const [, code = "", kind = "", cause = "", fix = ""] = entry;
    return { code, kind, cause, fix };
  });
}

/** On one line. Links lead to pages that the package does not contain. */
function plainText(markdown: string): string {
  return markdown
    .replace(/\[([^\]]+)\]\([^)]+\)/g, "$1")
    .trim()
    .replace(/\s+/g, " ");
}
