/**
 * What stands against leasing on a Redis server: a judgement over what it says of itself. Pure; inspection.ts fetches
 * the texts.
 */
import { commandLine } from "@callnumber/protocol/operator";
import type { Finding } from "../store.js";
import { evictingPolicy, factsOf, hasMemoryLimit, type ServerTexts, type ServerUse } from "./facts.js";
import { OPERATORS_WARNINGS, type Rule, WARNINGS } from "./warnings.js";

/** What is older gets no fixes, and nobody has tried it with this. */
const VERSION_MIN = [6, 2] as const;
const EPOCH_LINES = ["run_id", "master_replid", "sync_full", "sync_partial_ok", "role", "connected_slaves"];
/** All that stands against leasing on this server, then all that an operator should know of it. */
export function judgeServer(texts: ServerTexts, use: ServerUse): readonly Finding[] {
  const facts = factsOf(texts, use);
  const rules = texts.info === undefined ? [infoRefused] : [...REFUSALS, ...WARNINGS];
  return [...rules, ...OPERATORS_WARNINGS].flatMap((rule) => {
    const verdict = rule(facts);
    if (!verdict) return [];
    return [{ namespaces: use.concerns, ...verdict, what: `Redis at ${use.server}: ${verdict.what}` }];
  });
}

const infoRefused: Rule = () => ({
  code: "store_epoch_unreadable",
  what: "the user may not ask for INFO, so it can't be known whether the server was restarted",
  remedy: "ACL SETUSER <the coordinator's user> +info",
  override: undefined,
});

const REFUSALS: readonly Rule[] = [
  ({ info }) => {
    const role = info("role");
    return (
      role !== undefined &&
      role !== "master" && {
        code: "store_is_replica",
        what: "it is a replica",
        remedy: "--store with the master's address, or a redis-sentinel:// URL, which finds it",
        override: undefined,
      }
    );
  },
  ({ info }) => {
    const version = info("redis_version");
    // Valkey tells its own version beside the Redis version that it is compatible with; its first one is new enough.
    if (info("valkey_version") !== undefined || version === undefined || isAtLeast(version, VERSION_MIN)) return;
    return {
      code: "store_too_old",
      what: `its version is ${version}`,
      remedy: `Redis ${VERSION_MIN.join(".")} or later, or Valkey`,
      override: "old-server",
    };
  },
  ({ info }) => {
    const missing = EPOCH_LINES.filter((name) => !info(name));
    return (
      missing.length > 0 && {
        code: "store_epoch_unreadable",
        what: `its INFO has no ${missing.join(", no ")}, so it can't be known whether it was restarted`,
        remedy:
          "a server that tells run_id, master_replid, sync_full and sync_partial_ok: Redis 6.2 or later, or Valkey",
        override: undefined,
      }
    );
  },
  (facts) => {
    const policy = evictingPolicy(facts);
    return (
      policy !== undefined &&
      hasMemoryLimit(facts) && {
        code: "store_evicts",
        what: `when its memory is full it throws keys away (${policy}), and the counter may be among them`,
        remedy: "maxmemory-policy noeviction",
        override: "eviction",
      }
    );
  },
  ({ info, use }) => {
    const replicas = Number(info("connected_slaves") ?? 0);
    const uncounted = use.namespaces.filter(({ nodeCount }) => replicas > nodeCount - 1);
    return (
      uncounted.length > 0 && {
        code: "store_has_more_nodes",
        what:
          `${replicas} replicas are attached to it, more than are counted for ${uncounted.map(({ namespace }) => namespace).join(", ")}: ` +
          "one of them could be promoted without what it missed",
        remedy: `detach them; or count them: ${uncounted
          .map(({ namespace }) => `\`${commandLine("recover", namespace, { nodes: replicas + 1, apply: true })}\``)
          .join("; ")}`,
        override: undefined,
        namespaces: uncounted.map(({ namespace }) => namespace),
      }
    );
  },
];

function isAtLeast(version: string, [majorMin, minorMin]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}
