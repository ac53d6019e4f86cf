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

/** Unused names, to which `recover` renames keys of another type in the place of record, ledger and holders. */
export function asideKeysOf({ record, ledger, holders }: NamespaceKeys, nonce: string): readonly string[] {
  return [record, ledger, holders].map((key) => `${key}:foreign:${nonce}`);
}

/** Steps of the guard: they share lua/guard.lua in addition to lua/record.lua. */
const STEP_SCRIPTS = ["lease", "heartbeat", "claim", "confirm", "seal", "recover", "init", "advance"] as const;
/** They share lua/ledger.lua in addition to lua/record.lua. */
const LEDGER_SCRIPTS = ["report", "import", "trim", "leases"] as const;
export type ScriptName = (typeof STEP_SCRIPTS | typeof LEDGER_SCRIPTS)[number] | "check" | "read";

/** Sent by their SHA-1 alone, so that a connection must have loaded them before. */
export const SCRIPTS_SENT_BY_SHA1: readonly ScriptName[] = [...STEP_SCRIPTS, "check"];

const SHARED_PARTS = new Map<ScriptName, string>([
  ...STEP_SCRIPTS.map((name) => [name, "guard"] as const),
  ...LEDGER_SCRIPTS.map((name) => [name, "ledger"] as const),
]);

const scripts = new Map<ScriptName, { readonly text: string; readonly sha1: string }>();

export function scriptNamed(name: ScriptName) {
  const known = scripts.get(name);
  if (known !== undefined) return known;
  const parts = ["record", SHARED_PARTS.get(name) ?? [], name].flat();
  const text = parts
    .map((part) => readFileSync(new URL(`../../../lua/${part}.lua`, import.meta.url), "utf8"))
    .join("\n");
  const script = { text, sha1: hash("sha1", text) };
  scripts.set(name, script);
  return script;
}
