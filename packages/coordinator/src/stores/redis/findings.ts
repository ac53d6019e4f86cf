/**
 * What a Redis server reports of itself, and what is wrong with it or the path to it: first what prevents leasing, then what an operator
 * should know of. Only `reportOf` sends commands.
 */
import { commandLine } from "@callnumber/protocol/api";
import type { CoordinatorError } from "../../errors.js";
import { IF_NODES_ARE_GONE } from "../../guard/refusals.js";
import type { CountedNodes, Finding } from "../../guard/step-store.js";
import { isLoopback } from "../../platform/index.js";
import { escapeAndShorten } from "../../text.js";
import type { RedisLogin, SentinelPlace } from "./address.js";
import type { RedisCommand, RedisConnection } from "./connection.js";

/** What a server reports of itself, as far as the user's rights reach. */
interface ServerReport {
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
  readonly namespaces: readonly CountedNodes[];
  /** The namespaces concerned by what is wrong with this server; undefined for all. */
  readonly concerns: readonly string[] | undefined;
}

/** Settings of the append-only file: the unsafe value, the remedy, and what the unsafe value means. */
const UNSAFE_SETTINGS = [
  ["appendfsync", "no", "always", "when what it writes reaches the disk is left to chance", "appendfsync-no"],
  ["no-appendfsync-on-rewrite", "yes", "no", "while it rewrites its append-only file nothing is synced to the disk"],
  ["aof-load-truncated", "yes", "no", "it starts with an append-only file that lost its end, and reports nothing"],
] as const;
/** The settings that are read with CONFIG GET. */
const CONFIG_NAMES: readonly string[] = ["save", ...UNSAFE_SETTINGS.map(([name]) => name)];

/** Older versions get no fixes, and are not tested. */
const VERSION_MIN = "6.2";
const EPOCH_LINES = ["run_id", "master_replid", "sync_full", "sync_partial_ok", "role", "connected_slaves"];
/** The values that are read of INFO are a word or two. */
const VALUE_LENGTH_MAX = 100;

/**
 * What the server refuses to this user is left out. `asOperator`: also reads what only an operator's user may (CONFIG, ACL).
 * @throws CoordinatorError `store_unavailable`.
 */
export async function reportOf(connection: RedisConnection, asOperator: boolean): Promise<ServerReport> {
  const info = await replyIfAllowed(connection, ["INFO"]);
  return {
    info: info === undefined ? undefined : String(info),
    asOperator: asOperator ? { config: await config(connection), acl: await acl(connection) } : undefined,
  };
}

/** One name at a time: before version 7, Redis takes no more. */
async function config(connection: RedisConnection): Promise<Readonly<Record<string, string>> | undefined> {
  const values: Record<string, string> = {};
  for (const name of CONFIG_NAMES) {
    const pair = await replyIfAllowed(connection, ["CONFIG", "GET", name]);
    if (!Array.isArray(pair)) return undefined;
    if (pair.length === 2) values[name] = String(pair[1]);
  }
  return values;
}

async function acl(connection: RedisConnection): Promise<readonly string[] | undefined> {
  const lines = await replyIfAllowed(connection, ["ACL", "LIST"]);
  return Array.isArray(lines) ? lines.map(String) : undefined;
}

/** Undefined when the server refuses the command to this user, or has no such command (some providers remove it). */
async function replyIfAllowed(connection: RedisConnection, [name, ...parameters]: RedisCommand): Promise<unknown> {
  try {
    return await connection.send("", (redis) => redis.call(name, ...parameters));
  } catch (error) {
    const { cause } = error as CoordinatorError;
    if (cause instanceof Error && /^(?:NOPERM|ERR unknown command)/i.test(cause.message)) return undefined;
    throw error;
  }
}

/** What is found concerns `use.concerns`, unless it names namespaces. */
export function serverFindings({ info: text, asOperator }: ServerReport, use: ServerUse): readonly Finding[] {
  const info = infoReader(text ?? "");
  const found =
    text === undefined ? [INFO_REJECTED] : [...whatStopsLeasing(info, use), ...warnings(info, asOperator, use)];
  return [...found, ...operatorsWarnings(info, asOperator)].map(
    ({ code, what, remedy, override, namespaces = use.concerns }) => ({
      namespaces,
      code,
      what: `Redis at ${use.server}: ${what}`,
      remedy,
      override,
    }),
  );
}

/** A line of INFO, safe to print; undefined when it is missing. */
type InfoReader = (name: string) => string | undefined;

export function infoReader(text: string): InfoReader {
  return (name) => {
    const value = new RegExp(`^${name}:([^\\r\\n]*)`, "m").exec(text)?.[1];
    return value && escapeAndShorten(value, VALUE_LENGTH_MAX);
  };
}

const INFO_REJECTED: Finding = {
  code: "store_epoch_unreadable",
  what: "the user may not run INFO, so it can't be known whether the server was restarted",
  remedy: "ACL SETUSER <the coordinator's user> +info",
};

function* whatStopsLeasing(info: InfoReader, { namespaces }: ServerUse): Generator<Finding> {
  if ((info("role") ?? "master") !== "master") {
    yield {
      code: "store_is_replica",
      what: "it is a replica",
      remedy: "--store with the master's address, or a redis-sentinel:// URL, which finds it",
    };
  }
  const version = info("redis_version");
  // Valkey also reports the Redis version that it is compatible with; its own first one is new enough.
  if (info("valkey_version") === undefined && version !== undefined && !isAtLeast(version, VERSION_MIN)) {
    yield {
      code: "store_version_unsupported",
      what: `its version is ${version}`,
      remedy: `Redis ${VERSION_MIN} or later, or Valkey`,
      override: "old-server",
    };
  }
  const missing = EPOCH_LINES.filter((name) => !info(name));
  if (missing.length > 0) {
    yield {
      code: "store_epoch_unreadable",
      what: `its INFO has no ${missing.join(", no ")}, so it can't be known whether it was restarted`,
      remedy: `a server that reports ${EPOCH_LINES.slice(0, 4).join(", ")}: Redis ${VERSION_MIN} or later, or Valkey`,
    };
  }
  const policy = evictingPolicy(info);
  if (policy !== undefined && hasMemoryLimit(info)) {
    yield {
      code: "store_eviction_enabled",
      what: `when it is full, it deletes keys (${policy}), perhaps the counter`,
      remedy: "maxmemory-policy noeviction",
      override: "eviction",
    };
  }
  const replicas = replicaCountIn(info);
  const uncounted = namespaces.filter(({ nodeCount }) => replicas > nodeCount - 1).map(({ namespace }) => namespace);
  if (uncounted.length > 0) {
    const recover = (namespace: string) =>
      `\`${commandLine("recover", namespace, { nodes: replicas + 1, apply: true })}\``;
    yield {
      code: "unexpected_replicas",
      what:
        `${replicas} replicas are attached to it, more than are counted for ${uncounted.join(", ")}: ` +
        "one of them could be promoted without what it missed",
      remedy: `detach them; or count them: ${uncounted.map(recover).join("; ")}`,
      namespaces: uncounted,
    };
  }
}

function* warnings(
  info: InfoReader,
  asOperator: ServerReport["asOperator"],
  { tls, host, namespaces }: ServerUse,
): Generator<Finding> {
  const replicas = replicaCountIn(info);
  const missing = namespaces.filter(({ nodeCount }) => replicas < nodeCount - 1).map(({ namespace }) => namespace);
  if (missing.length > 0) {
    yield {
      what: `${replicas} replicas are connected to it, fewer than are counted for ${missing.join(", ")}: one more that fails may stop leasing`,
      remedy: `connect the others, or count fewer (recover --nodes) ${IF_NODES_ARE_GONE}`,
      override: "replica-missing",
      namespaces: missing,
    };
  }
  const policy = evictingPolicy(info);
  if (policy !== undefined && !hasMemoryLimit(info)) {
    yield {
      what: `as soon as its memory is limited it deletes keys (${policy}), and the counter may be among them`,
      remedy: "maxmemory-policy noeviction",
      override: "eviction-when-limited",
    };
  }
  if (info("aof_enabled") === "0") {
    yield {
      what:
        asOperator?.config?.["save"] === ""
          ? "it keeps nothing on disk: after a restart it is empty, and an operator must recover it"
          : "it keeps no append-only file: after a crash it has lost all since the last snapshot, if there is one",
      remedy: "appendonly yes",
      override: "no-persistence",
    };
  }
  if (info("aof_last_write_status") === "err" || info("aof_last_bgrewrite_status") === "err") {
    yield {
      what: "it fails to write its append-only file",
      remedy: "make room on its disk, or repair it",
      override: "failing-writes",
    };
  }
  if (!tls && !isLoopback(host)) {
    yield {
      what: "password and runs cross the network unencrypted",
      remedy: "--store with rediss in place of redis",
      override: "no-tls",
    };
  }
}

/** From what only an operator's user may read. */
function* operatorsWarnings(info: InfoReader, asOperator: ServerReport["asOperator"]): Generator<Finding> {
  if (asOperator === undefined) return;
  const { config, acl } = asOperator;
  // Without an append-only file, its settings have no effect.
  const unsafe = UNSAFE_SETTINGS.filter(([name, value]) => config?.[name] === value && info("aof_enabled") !== "0");
  for (const [name, , remedy, what, override = name] of unsafe) yield { what, remedy: `${name} ${remedy}`, override };
  const defaultUser = acl?.find((line) => /^user default on\b/.test(line));
  if (defaultUser !== undefined) {
    const password = /\bnopass\b/.test(defaultUser) ? ", without a password" : "";
    yield {
      what: `every client that reaches it may log in as the default user${password}`,
      // Who turns it off first, and has no other user in the URL, locks himself out.
      remedy:
        "make the users (deploy/redis/make-acl.sh), put one into the store's URL, and only then: user default off",
      override: "default-user",
    };
  }
  const rejected = [config === undefined && "CONFIG GET", acl === undefined && "ACL LIST"].filter(Boolean);
  if (rejected.length > 0) {
    yield {
      what: `this user may not run ${rejected.join(" and ")}: what they return was not checked`,
      remedy: "--store with the operator's user",
      override: "unseen-configuration",
    };
  }
}

function replicaCountIn(info: InfoReader): number {
  return Number(info("connected_slaves") ?? 0);
}

/** Only a policy over all keys can evict ours: ours have no time to live. */
function evictingPolicy(info: InfoReader): string | undefined {
  const policy = info("maxmemory_policy");
  return policy?.startsWith("allkeys-") ? policy : undefined;
}

function hasMemoryLimit(info: InfoReader): boolean {
  return Number(info("maxmemory") ?? 0) > 0;
}

function isAtLeast(version: string, minimum: string): boolean {
  return version.localeCompare(minimum, "en", { numeric: true }) >= 0;
}

type SentinelAccess = Pick<SentinelPlace, "sentinels" | "sentinelPassword"> & Pick<RedisLogin, "tls" | "tlsFiles">;

/**
 * The path to a master that Sentinels name: a program that answers in the place of a Sentinel decides where the password of the data
 * servers is sent. A Sentinel's own password does not prevent that, as it proves us to the Sentinel and not the Sentinel to us.
 */
export function* sentinelFindings({ sentinels, sentinelPassword, tls, tlsFiles }: SentinelAccess): Generator<Finding> {
  // Nothing on the network can answer in the place of a Sentinel on this machine.
  if (sentinels.every(({ host }) => isLoopback(host))) return;
  if (!tls) {
    yield {
      what:
        "the Sentinels are queried without TLS: a program that answers in the place of one, or changes its reply on the way, names the server " +
        "that is given the user's password",
      remedy: "--store with rediss-sentinel in place of redis-sentinel, and ?ca= with an authority of your own",
      override: "sentinel-no-tls",
    };
  }
  // A client certificate that they require keeps unauthenticated clients out as well.
  if (sentinelPassword === undefined && tlsFiles?.certificate === undefined) {
    yield {
      what:
        "the Sentinels require no password: a client that reaches the port of one can have it name another server as the master, " +
        "which is then given the user's password",
      remedy: "requirepass for each Sentinel, and --store with ?sentinelPassword=",
      override: "sentinel-no-password",
    };
  }
}
