/** Who asks, and what they may ask for. Pure; how a caller is known is a door's business. */

/** Roles of tokens. `lease`: an importer · `read`: who looks · `operator`: looks, and changes what operators write. */
export const ROLES = ["lease", "read", "operator"] as const;
export type Role = (typeof ROLES)[number];

/** `public`: anybody · `lease`: takes runs and reports on them · `read`: looks · `change`: changes what operators write · `settings`: looks at how it was started. */
export type Access = "public" | "lease" | "read" | "change" | "settings";

export interface Caller {
  /** First eight hex digits of the SHA-256 of the caller's token; null where nobody is asked for one. */
  readonly tokenId: string | null;
  readonly accesses: ReadonlySet<Access>;
  readonly namespaces: ReadonlySet<string> | "all";
}

/** What each role may do: no more than its work needs. Whoever only looks burns no run, and a stolen importer's token shows nothing. */
export const ACCESSES_OF: Readonly<Record<Role, ReadonlySet<Access>>> = {
  lease: new Set(["public", "lease"]),
  read: new Set(["public", "read"]),
  operator: new Set(["public", "read", "change", "settings"]),
};

/** Everybody, where nobody is asked for a token. */
export const ANYBODY: Caller = {
  tokenId: null,
  accesses: new Set(["public", "lease", "read", "change", "settings"]),
  namespaces: "all",
};

/** Who is known by nothing. */
export const STRANGER: Caller = { tokenId: null, accesses: new Set(["public"]), namespaces: new Set() };

/** Whether `GET /v1/settings` would be answered. Null for a request that was refused before its caller was known. */
export function mayKnowSettings(caller: Caller | null): boolean {
  return caller !== null && caller.accesses.has("settings") && caller.namespaces === "all";
}

export function maySee(caller: Caller, namespace: string): boolean {
  return caller.namespaces === "all" || caller.namespaces.has(namespace);
}
