/** Reads what a Redis server reports of itself, as far as the user's rights reach. */
import type { CoordinatorError } from "../../errors.js";
import type { RedisCommand, RedisConnection } from "./connection.js";
import { CONFIG_NAMES, type ServerReport } from "./findings.js";

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
