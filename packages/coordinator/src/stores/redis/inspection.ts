/** Looks at the servers of a Redis store: fetches what each says of itself, as far as the user may ask, and has it judged. */
import type { CoordinatorError } from "../../errors.js";
import type { Finding } from "../store.js";
import type { RedisConnection } from "./connection.js";
import { CONFIG_NAMES, type ServerTexts, type ServerUse } from "./facts.js";
import { judgeServer } from "./preflight.js";

/** The namespaces that each server holds. */
export type Holdings = ReadonlyMap<RedisConnection, ServerUse["namespaces"]>;

/**
 * `asOperator`: also looks at what only an operator's user may ask (CONFIG, ACL).
 * @throws CoordinatorError `store_unavailable`.
 */
export async function inspectServers(
  holdings: Holdings,
  { asOperator }: { readonly asOperator: boolean },
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const [connection, namespaces] of holdings) {
    const { server, address } = connection;
    const concerns = holdings.size > 1 ? namespaces.map(({ namespace }) => namespace) : undefined;
    const texts = await serverTexts(connection, { asOperator });
    findings.push(...judgeServer(texts, { ...address, server, namespaces, concerns }));
  }
  return findings;
}

/** @throws CoordinatorError `store_unavailable` when it can't be reached; what it refuses to tell is left out. */
async function serverTexts(
  connection: RedisConnection,
  { asOperator }: { readonly asOperator: boolean },
): Promise<ServerTexts> {
  const info = await told(connection, ["INFO"]);
  return {
    info: info === undefined ? undefined : String(info),
    asOperator: asOperator ? { config: await config(connection), acl: await acl(connection) } : undefined,
  };
}

/** One name at a time: before Redis 7 it takes no more. */
async function config(connection: RedisConnection): Promise<Readonly<Record<string, string>> | undefined> {
  const values: Record<string, string> = {};
  for (const name of CONFIG_NAMES) {
    const pair = await told(connection, ["CONFIG", "GET", name]);
    if (!Array.isArray(pair)) return undefined;
    if (pair.length === 2) values[name] = String(pair[1]);
  }
  return values;
}

async function acl(connection: RedisConnection): Promise<readonly string[] | undefined> {
  const lines = await told(connection, ["ACL", "LIST"]);
  return Array.isArray(lines) ? lines.map(String) : undefined;
}

/** The answer; undefined when the server refuses it to this user, or has no such command (some providers take it away). */
async function told(
  connection: RedisConnection,
  [command, ...parameters]: readonly [string, ...string[]],
): Promise<unknown> {
  try {
    return await connection.ask({ namespace: "" }, (redis) => redis.call(command, ...parameters));
  } catch (error) {
    const { cause } = error as CoordinatorError;
    if (cause instanceof Error && /^(?:NOPERM|ERR unknown command)/i.test(cause.message)) return undefined;
    throw error;
  }
}
