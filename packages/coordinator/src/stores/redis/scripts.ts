/** Our scripts as Redis gets them: each with the parts that it shares with others (lua/) in front, and the keys that it may touch. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";

export type NamespaceKeys = Readonly<Record<"record" | "ledger" | "holders" | "reports" | "retention", string>>;

/** The braces put all keys of a namespace in one hash slot, so that one script may touch them in a Cluster. */
export function keysOf(prefix: string, namespace: string): NamespaceKeys {
  const own = `${prefix}{${namespace}}:`;
  return {
    record: `${own}record`,
    ledger: `${own}ledger`,
    holders: `${own}holders`,
    reports: `${own}reports`,
    retention: `${own}retention`,
  };
}

/** An unused name, to which a key of another program is renamed. */
export function asideKeyOf(key: string, nonce: string): string {
  return `${key}:foreign:${nonce}`;
}

/** The scripts of the guard, sent by their SHA-1 alone, so that a connection must have loaded them before. */
export const SCRIPTS_SENT_BY_SHA1 = ["apply", "read"] as const;

/** For each script the parts in front of it. */
const SHARED_PARTS = {
  apply: ["observe", "entry"],
  read: ["observe"],
  append: ["entry", "reports"],
  report: ["reports"],
  trim: ["reports"],
  since: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ScriptName = keyof typeof SHARED_PARTS;

const scripts = new Map<ScriptName, { readonly text: string; readonly sha1: string }>();

export function scriptNamed(name: ScriptName) {
  const known = scripts.get(name);
  if (known !== undefined) return known;
  const parts = [...SHARED_PARTS[name], name];
  const text = parts
    .map((part) => readFileSync(new URL(`../../../lua/${part}.lua`, import.meta.url), "utf8"))
    .join("\n");
  const script = { text, sha1: hash("sha1", text) };
  scripts.set(name, script);
  return script;
}
