/** What a server reports of itself, and what is wrong with it or the way to it: first what prevents leasing, then what an operator should know of. */
import { commandLine } from "@callnumber/protocol/api";
import { quorumOf } from "../../guard/record.js";
import { IF_NODES_ARE_GONE } from "../../guard/refusals.js";
import type { CountedNodes, Finding } from "../../guard/step-store.js";
import { isLoopback } from "../../platform/index.js";
import { wholeIn } from "../stored-shapes.js";
import { type PostgresAddress, serverOf } from "./address.js";
import type { PostgresConnections, Row } from "./connection.js";
import { SENDERS } from "./statements.js";

/** Older versions get no fixes, and are not tested. */
const VERSION_MIN = 14;

const REPORT = `SELECT current_setting('server_version_num')::integer / 10000 AS version, current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes, current_setting('lock_timeout') AS lock_timeout, current_setting('synchronous_standby_names') AS synchronous, pg_is_in_recovery() AS is_replica,
  (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser,
  pg_has_role('pg_read_all_stats', 'MEMBER') AS may_read_stats,
  (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'logical' AND active)::integer AS logical,
  (SELECT count(*) FILTER (WHERE NOT (is_standby AND replays) AND is_waited_for) FROM ${SENDERS} AS sender)::integer AS others_waited_for,
  (SELECT json_agg(json_build_object('name', application_name, 'state', sync_state)) FROM ${SENDERS} AS sender WHERE is_standby) AS standbys`;

export interface PostgresUse {
  readonly address: PostgresAddress;
  /** Also whether the standbys are there now: not for a coordinator, whose commits wait for them, and go on when they come back. */
  readonly asOperator: boolean;
  readonly namespaces: readonly CountedNodes[];
}

interface Standby {
  readonly name: string;
  /** `sync` or `quorum` for one that commits wait for; null without the right to see it. */
  readonly state: string | null;
}

/** @throws CoordinatorError `store_epoch_unreadable`, `store_unavailable`. */
export async function postgresFindings(
  connections: PostgresConnections,
  use: PostgresUse,
): Promise<readonly Finding[]> {
  const { value } = await connections.use("reads", (send) => send(REPORT));
  const row = value.rows[0] ?? {};
  return [...whatStopsLeasing(row, use), ...warnings(row, use)].map(({ code, what, remedy, override, namespaces }) => ({
    namespaces,
    code,
    what: `PostgreSQL at ${serverOf(use.address)}: ${what}`,
    remedy,
    override,
  }));
}

/**
 * How many standbys a commit waits for: `s1, s2`, `2 (s1, s2)`, `FIRST 2 (…)`, `ANY 2 (…)`, as
 * https://www.postgresql.org/docs/current/runtime-config-replication.html describes `synchronous_standby_names`.
 */
function synchronousCountIn(setting: string): number {
  if (setting.trim() === "") return 0;
  const [, count = "1"] = /^\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(/i.exec(setting) ?? [];
  return wholeIn(count) ?? 0;
}

function* whatStopsLeasing(row: Row, { namespaces, asOperator }: PostgresUse): Generator<Finding> {
  if (row["is_replica"] === true) {
    yield { code: "store_is_replica", what: "it is a replica", remedy: "--store with the primary's address" };
    return;
  }
  const version = Number(row["version"]);
  if (version < VERSION_MIN) {
    yield {
      code: "store_version_unsupported",
      what: `its version is ${version}`,
      remedy: `PostgreSQL ${VERSION_MIN} or later`,
      override: "old-server",
    };
  }
  const standbys = (row["standbys"] ?? []) as readonly Standby[];
  const uncounted = namespaces
    .filter(({ nodeCount }) => standbys.length > nodeCount - 1)
    .map(({ namespace }) => namespace);
  if (uncounted.length > 0) {
    const recover = (namespace: string) =>
      `\`${commandLine("recover", namespace, { nodes: standbys.length + 1, apply: true })}\``;
    // A standby that lost its connection has two for a while.
    const hasTwins = new Set(standbys.map(({ name }) => name)).size < standbys.length;
    const waitForTwins = hasTwins
      ? "wait for wal_sender_timeout, as two have one name and may be one standby; or "
      : "";
    yield {
      code: "unexpected_replicas",
      what:
        `${standbys.length} standbys are attached to it, more than are counted for ${uncounted.join(", ")}: ` +
        "one of them could be promoted without what it missed",
      remedy: `${waitForTwins}detach them (an archiver may stay, with application_name=pg_receivewal); or count them: ${uncounted.map(recover).join("; ")}`,
      namespaces: uncounted,
    };
  }
  // An archiver or a logical subscriber may be one of those that are named.
  const waited = synchronousCountIn(String(row["synchronous"] ?? "")) - Number(row["others_waited_for"] ?? 0);
  for (const [missing, override] of [
    [namespaces.filter(({ nodeCount }) => waited < quorumOf(nodeCount)), undefined],
    [namespaces.filter(({ nodeCount }) => waited >= quorumOf(nodeCount) && waited < nodeCount - 1), "majority"],
  ] as const) {
    if (missing.length === 0) continue;
    const needed = Math.max(...missing.map(({ nodeCount }) => nodeCount - 1));
    const names = missing.map(({ namespace }) => namespace);
    yield {
      code: "quorum_missing",
      what: `commits wait for ${waited} of ${needed} standbys of ${names.join(", ")}, so a promoted one could lack a lease`,
      remedy: `connect them, then synchronous_standby_names = 'ANY ${needed} (…)' with their names, or count fewer (recover --nodes) ${IF_NODES_ARE_GONE}`,
      override,
      namespaces: names,
    };
  }
  if (asOperator && standbys.length < waited) {
    yield {
      code: "quorum_missing",
      what: `commits wait for ${waited} standbys, and ${standbys.length} are connected: each waits until they come`,
      remedy: "connect the standbys that synchronous_standby_names has, by their application_name",
    };
  }
  const several = namespaces.filter(({ nodeCount }) => nodeCount > 1).map(({ namespace }) => namespace);
  if (several.length === 0) return;
  if (standbys.some(({ state }) => state === null)) {
    yield {
      code: "store_epoch_unreadable",
      what: "the user may not see whether its standbys are synchronous",
      remedy: grantOfStats(row),
      namespaces: several,
    };
  }
  const asynchronous = standbys
    .filter(({ state }) => state === "async" || state === "potential")
    .map(({ name }) => name);
  if (asynchronous.length > 0) {
    yield {
      code: "unexpected_replicas",
      what: `no commit waits for the standby ${asynchronous.join(", ")}: promoted, it could lack a lease`,
      remedy: "name it in synchronous_standby_names with ANY, or detach it",
      namespaces: several,
    };
  }
}

/** A role that does not inherit has what was granted to it, and may not use it. From PostgreSQL 16 on, each grant has that of its time. */
function grantOfStats({ may_read_stats: isMember, version }: Row): string {
  if (isMember !== true) return "as a superuser, GRANT pg_read_all_stats TO the user of --store";
  const inherit =
    Number(version) < 16 ? "ALTER ROLE … INHERIT for" : "GRANT pg_read_all_stats TO … WITH INHERIT TRUE for";
  return `as a superuser, ${inherit} the user of --store, who has pg_read_all_stats and does not inherit it`;
}

function* warnings(row: Row, { address }: PostgresUse): Generator<Finding> {
  for (const name of ["fsync", "full_page_writes"]) {
    if (row[name] === "off") {
      yield {
        what: `it runs with ${name} off: after a crash of its machine its data may be damaged`,
        remedy: `${name} = on`,
        override: name.replaceAll("_", "-"),
      };
    }
  }
  if (row["lock_timeout"] === "0" && row["is_superuser"] !== true) {
    yield {
      what: "requests wait without end for a program that locks a table, and keep their connections",
      remedy:
        "ALTER ROLE … SET lock_timeout = '4s' for the coordinator's user, as deploy/postgres/coordinator.sql does",
      override: "lock-timeout",
    };
  }
  if (Number(row["logical"]) > 0) {
    yield {
      what: "a logical subscriber is attached: it has a copy of the record, from which no coordinator may lease",
      remedy: "leave the schema of the store out of its publication",
      override: "logical-subscriber",
    };
  }
  if (row["is_superuser"] === true) {
    yield {
      what: "the coordinator's user may do everything on it",
      remedy: "a user with the rights in deploy/postgres/coordinator.sql",
      override: "superuser",
    };
  }
  if (!address.tls && !address.host.startsWith("/") && !isLoopback(address.host)) {
    yield {
      what: "password and runs cross the network unencrypted",
      remedy: "--store with ?sslmode=verify-full",
      override: "no-tls",
    };
  }
}
