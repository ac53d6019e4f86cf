/** Inspects the servers of a Redis store: reads what each reports of itself, as far as the user's rights reach. */
import type { CoordinatorError } from "../../errors.js";
import type { Finding } from "../store.js";
import type { RedisConnection } from "./connection.js";
import { CONFIG_NAMES, type ServerReport, type ServerUse, serverFindings } from "./findings.js";

/** The namespaces that each server holds. */
export type NamespacesByServer = ReadonlyMap<RedisConnection, ServerUse["namespaces"]>;

/**
 * `asOperator`: also reads what only an operator's user may (CONFIG, ACL).
 * @throws CoordinatorError `store_unavailable`.
 */
export async function inspectServers(
  servers: NamespacesByServer,
  { asOperator }: { readonly asOperator: boolean },
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const [connection, namespaces] of servers) {
    const { server, address } = connection;
    const { host, tls } = address;
    const concerns = servers.size > 1 ? namespaces.map(({ namespace }) => namespace) : undefined;
    const report = await reportOf(connection, { asOperator });
    findings.push(...serverFindings(report, { host, tls, server, namespaces, concerns }));
  }
  return findings;
}

/** @throws CoordinatorError `store_unavailable` when the server can't be reached; what it refuses to this user is left out. */
async function reportOf(
  connection: RedisConnection,
  { asOperator }: { readonly asOperator: boolean },
): Promise<ServerReport> {
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
async function replyIfAllowed(
  connection: RedisConnection,
  [command, ...parameters]: readonly [string, ...string[]],
): Promise<unknown> {
  try {
    return await connection.send({ namespace: "" }, (redis) => redis.call(command, ...parameters));
  } catch (error) {
    const { cause } = error as CoordinatorError;
    if (cause instanceof Error && /^(?:NOPERM|ERR unknown command)/i.test(cause.message)) return undefined;
    throw error;
  }
}
