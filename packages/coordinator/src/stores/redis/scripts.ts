/** Our scripts as Redis gets them: each with the parts that it shares with others (lua/) in front, and the keys that it may touch. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export interface NamespaceKeys {
  readonly record: string;
  readonly ledger: string;
  readonly holders: string;
  readonly reports: string;
  readonly labels: string;
  readonly retention: string;
}

/** The braces put all keys of a namespace in one hash slot, so that one script may touch them in a Cluster. */
export function keysOf(prefix: string, namespace: string): NamespaceKeys {
  const key = (name: string) => `${prefix}{${namespace}}:${name}`;
  return {
    record: key("record"),
    ledger: key("ledger"),
    holders: key("holders"),
    reports: key("reports"),
    labels: key("labels"),
    retention: key("retention"),
  };
}

/** Unused names, to which `recover` renames keys of another type in the place of record, ledger and holders. */
export function asideKeysOf({ record, ledger, holders }: NamespaceKeys, nonce: string): readonly string[] {
  return [record, ledger, holders].map((key) => `${key}:foreign:${nonce}`);
}

/** Steps of the guard: they share lua/guard.lua besides lua/record.lua. */
const STEP_SCRIPTS = ["lease", "heartbeat", "claim", "confirm", "seal", "recover", "init", "advance"] as const;
/** What the other scripts share besides lua/record.lua. */
const SHARED_PARTS = {
  check: [],
  read: [],
  report: ["ledger"],
  import: ["ledger"],
  trim: ["ledger"],
  leases: ["ledger"],
} as const;
export type ScriptName = (typeof STEP_SCRIPTS)[number] | keyof typeof SHARED_PARTS;

/** Sent by their SHA-1 alone, so that a connection must have loaded them before. */
export const SCRIPTS_SENT_BY_SHA1: readonly ScriptName[] = [...STEP_SCRIPTS, "check"];

export interface Script {
  readonly text: string;
  readonly sha1: string;
}

const scripts = new Map<ScriptName, Script>();

export function scriptNamed(name: ScriptName): Script {
  const known = scripts.get(name);
  if (known !== undefined) return known;
  const shared = name in SHARED_PARTS ? SHARED_PARTS[name as keyof typeof SHARED_PARTS] : ["guard"];
  const text = ["record", ...shared, name].map(readScript).join("\n");
  const script = { text, sha1: createHash("sha1").update(text).digest("hex") };
  scripts.set(name, script);
  return script;
}

function readScript(name: string): string {
  return readFileSync(new URL(`../../../lua/${name}.lua`, import.meta.url), "utf8");
}
