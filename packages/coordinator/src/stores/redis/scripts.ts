/** Our scripts as Redis gets them: each behind the parts that it shares with others (lua/), known by its SHA-1. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** Steps of the guard: they share lua/guard.lua besides lua/record.lua. */
const STEP_SCRIPTS = ["lease", "touch", "claim", "confirm", "seal", "recover", "init", "advance"] as const;
/** What stands in front of the other scripts besides lua/record.lua. */
const SHARED_PARTS = {
  check: [],
  read: [],
  report: ["ledger"],
  import: ["ledger"],
  trim: ["ledger"],
  "lease-at": ["ledger", "leases"],
  "lease-since": ["ledger", "leases"],
  "leases-below": ["ledger", "leases"],
  "leases-after": ["ledger", "leases"],
} as const;
export type ScriptName = (typeof STEP_SCRIPTS)[number] | keyof typeof SHARED_PARTS;

/** Those that are sent by their SHA-1 alone, so that a connection must have loaded them before. */
export const SCRIPTS_SENT_BY_SUM: readonly ScriptName[] = [...STEP_SCRIPTS, "check"];

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
