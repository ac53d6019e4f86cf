/** What is wrong with a Redis server or the path to it: first what prevents leasing, then what an operator should know of. Pure. */
import { commandLine } from "@callnumber/protocol/operator";
import { isLoopback } from "../../platform/loopback.js";
import { escapeAndShorten } from "../../text.js";
import type { Finding } from "../store.js";
import type { RedisLogin, SentinelPlace } from "./address.js";

/** What a server reports of itself, as far as the user's rights reach. */
export interface ServerReport {
  /** INFO; undefined without the right to it. */
  readonly info: string | undefined;
  /** Only for an operator: CONFIG GET by name, and ACL LIST; each undefined without the right to it. */
  readonly asOperator:
    | {
        readonly config: Readonly<Record<string, string>> | undefined;
        readonly acl: readonly string[] | undefined;
      }
    | undefined;
}

/** How the store uses a server. */
export interface ServerUse {
  readonly host: string;
  /** For messages. */
  readonly server: string;
  readonly tls: boolean;
  readonly namespaces: readonly { readonly namespace: string; readonly nodeCount: number }[];
  /** The namespaces concerned by what is wrong with this server; undefined for all. */
  readonly concerns: readonly string[] | undefined;
}

/** The settings that are read with CONFIG GET. */
export const CONFIG_NAMES = ["save", "appendfsync", "no-appendfsync-on-rewrite", "aof-load-truncated"] as const;

interface Facts {
  readonly use: ServerUse;
  /** A line of INFO, safe to print; undefined when it is missing. */
  readonly info: (name: string) => string | undefined;
  readonly asOperator: ServerReport["asOperator"];
}

/** What a rule finds concerns `ServerUse.concerns`, unless it names namespaces. */
type Rule = (facts: Facts) => Finding | false | undefined;

/** Older versions get no fixes, and are not tested. */
const VERSION_MIN = [6, 2] as const;
const EPOCH_LINES = ["run_id", "master_replid", "sync_full", "sync_partial_ok", "role", "connected_slaves"];
/** The values that are read of INFO are a word or two. */
const VALUE_LENGTH_MAX = 100;

export function serverFindings(report: ServerReport, use: ServerUse): readonly Finding[] {
  const facts = { use, info: infoReader(report.info ?? ""), asOperator: report.asOperator };
  const rules = report.info === undefined ? [infoRefused] : [...REFUSALS, ...WARNINGS];
  return [...rules, ...OPERATORS_WARNINGS].flatMap((rule) => {
    const found = rule(facts);
    if (!found) return [];
    const { namespaces = use.concerns, code, what, remedy, override } = found;
    return [{ namespaces, code, what: `Redis at ${use.server}: ${what}`, remedy, override }];
  });
}

/** Reads a line of INFO, safe to print. */
export function infoReader(text: string): (name: string) => string | undefined {
  return (name) => {
    const value = new RegExp(`^${name}:([^\\r\\n]*)`, "m").exec(text)?.[1];
    return value && escapeAndShorten(value, VALUE_LENGTH_MAX);
  };
}

const infoRefused: Rule = () => ({
  code: "store_epoch_unreadable",
  what: "the user may not ask for INFO, so it can't be known whether the server was restarted",
  remedy: "ACL SETUSER <the coordinator's user> +info",
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
      }
    );
  },
  ({ info }) => {
    const version = info("redis_version");
    // Valkey reports its own version besides the Redis version that it is compatible with; its first one is new enough.
    if (info("valkey_version") !== undefined || version === undefined || isAtLeast(version, VERSION_MIN)) return;
    return {
      code: "store_version_unsupported",
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
      }
    );
  },
  (facts) => {
    const policy = evictingPolicy(facts);
    return (
      policy !== undefined &&
      hasMemoryLimit(facts) && {
        code: "store_eviction_enabled",
        what: `when its memory is full it throws keys away (${policy}), and the counter may be among them`,
        remedy: "maxmemory-policy noeviction",
        override: "eviction",
      }
    );
  },
  ({ info, use }) => {
    const replicas = Number(info("connected_slaves") ?? 0);
    const namespaces = use.namespaces
      .filter(({ nodeCount }) => replicas > nodeCount - 1)
      .map(({ namespace }) => namespace);
    const recover = (namespace: string) => commandLine("recover", namespace, { nodes: replicas + 1, apply: true });
    return (
      namespaces.length > 0 && {
        code: "unexpected_replicas",
        what:
          `${replicas} replicas are attached to it, more than are counted for ${namespaces.join(", ")}: ` +
          "one of them could be promoted without what it missed",
        remedy: `detach them; or count them: ${namespaces.map((namespace) => `\`${recover(namespace)}\``).join("; ")}`,
        namespaces,
      }
    );
  },
];

const WARNINGS: readonly Rule[] = [
  (facts) => {
    const policy = evictingPolicy(facts);
    return (
      policy !== undefined &&
      !hasMemoryLimit(facts) && {
        what: `as soon as its memory is limited it throws keys away (${policy}), and the counter may be among them`,
        remedy: "maxmemory-policy noeviction",
        override: "eviction-when-limited",
      }
    );
  },
  ({ info, asOperator }) =>
    info("aof_enabled") === "0" && {
      what:
        asOperator?.config?.["save"] === ""
          ? "it keeps nothing on disk: after a restart it is empty, and somebody must recover it"
          : "it keeps no append-only file: after a crash it has forgotten all since the last snapshot, if there is one",
      remedy: "appendonly yes",
      override: "no-persistence",
    },
  ({ info }) =>
    (info("aof_last_write_status") === "err" || info("aof_last_bgrewrite_status") === "err") && {
      what: "it fails to write its append-only file",
      remedy: "make room on its disk, or mend it",
      override: "failing-writes",
    },
  ({ use }) =>
    !use.tls &&
    !isLoopback(use.host) && {
      what: "password and runs cross the network unencrypted",
      remedy: "--store with rediss in place of redis",
      override: "no-tls",
    },
];

/** From what only an operator's user may read. */
const OPERATORS_WARNINGS: readonly Rule[] = [
  configIs("appendfsync", "no", {
    what: "when what it writes reaches the disk is left to chance",
    remedy: "appendfsync always",
    override: "appendfsync-no",
  }),
  configIs("no-appendfsync-on-rewrite", "yes", {
    what: "while it rewrites its append-only file nothing is synced to the disk",
    remedy: "no-appendfsync-on-rewrite no",
    override: "no-appendfsync-on-rewrite",
  }),
  configIs("aof-load-truncated", "yes", {
    what: "when its append-only file has lost its end it starts with what is left, and says nothing",
    remedy: "aof-load-truncated no",
    override: "aof-load-truncated",
  }),
  ({ asOperator }) => {
    const user = asOperator?.acl?.find((line) => /^user default on\b/.test(line));
    return (
      user !== undefined && {
        what: `whoever reaches it is let in as the default user${/\bnopass\b/.test(user) ? ", without a password" : ""}`,
        remedy: "user default off",
        override: "default-user",
      }
    );
  },
  ({ asOperator }) => {
    const refused = [
      ...(asOperator !== undefined && asOperator.config === undefined ? ["CONFIG GET"] : []),
      ...(asOperator !== undefined && asOperator.acl === undefined ? ["ACL LIST"] : []),
    ];
    return (
      refused.length > 0 && {
        what: `this user may not say ${refused.join(" and ")}: what they tell was not looked at`,
        remedy: "--store with the operator's user",
        override: "unseen-configuration",
      }
    );
  },
];

/** Without an append-only file, its settings have no effect. */
function configIs(name: (typeof CONFIG_NAMES)[number], value: string, finding: Finding): Rule {
  return ({ asOperator, info }) => asOperator?.config?.[name] === value && info("aof_enabled") !== "0" && finding;
}

/** Only a policy over all keys can evict ours: ours have no time to live. */
function evictingPolicy({ info }: Facts): string | undefined {
  const policy = info("maxmemory_policy");
  return policy?.startsWith("allkeys-") ? policy : undefined;
}

function hasMemoryLimit({ info }: Facts): boolean {
  return Number(info("maxmemory") ?? 0) > 0;
}

function isAtLeast(version: string, [majorMin, minorMin]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

type SentinelAccess = Pick<SentinelPlace, "sentinels" | "sentinelPassword"> & Pick<RedisLogin, "tls" | "tlsFiles">;

/**
 * The path to a master that Sentinels name: a program that answers in the place of a Sentinel decides where the password of the data
 * servers is sent. A Sentinel's own password does not prevent that, as it proves us to the Sentinel and not the Sentinel to us.
 */
export function sentinelFindings({ sentinels, sentinelPassword, tls, tlsFiles }: SentinelAccess): readonly Finding[] {
  // Nothing on the network can answer in the place of a Sentinel on this machine.
  if (sentinels.every(({ host }) => isLoopback(host))) return [];
  return [
    ...(tls ? [] : [NO_SENTINEL_TLS]),
    // A client certificate that they require keeps unauthenticated clients out as well.
    ...(sentinelPassword === undefined && tlsFiles?.certificate === undefined ? [NO_SENTINEL_PASSWORD] : []),
  ];
}

const NO_SENTINEL_TLS: Finding = {
  code: undefined,
  namespaces: undefined,
  what:
    "the Sentinels are asked without TLS: whoever answers in the place of one, or changes its answer on the way, names the server that is given " +
    "the user's password",
  remedy: "--store with rediss-sentinel in place of redis-sentinel, and ?ca= with an authority of your own",
  override: "sentinel-no-tls",
};

const NO_SENTINEL_PASSWORD: Finding = {
  code: undefined,
  namespaces: undefined,
  what:
    "the Sentinels ask for no password: whoever reaches the port of one can have it name another server as the master, " +
    "which is then given the user's password",
  remedy: "requirepass for each Sentinel, and --store with ?sentinelPassword=",
  override: "sentinel-no-password",
};
