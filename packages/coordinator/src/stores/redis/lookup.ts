/**
 * One question to many servers at once, each over a connection of its own: who they say is the master. They may disagree, or not
 * answer at all; the asker decides whom to believe.
 */
import { CoordinatorError } from "../../errors.js";
import { type Endpoint, endpointText, type RedisLogin } from "./address.js";
import { RedisConnection, type Words } from "./connection.js";

/** So long one server that does not answer holds up the others' word, ms. */
const LOOKUP_TIMEOUT_MS = 1_000;

export interface Told {
  readonly from: Endpoint;
  /** One for each command; none of them an error. */
  readonly answers: readonly unknown[];
}

export interface Hearing {
  readonly told: readonly Told[];
  /** Why each of the others told nothing, with its address, for people. */
  readonly faults: readonly string[];
}

/** Sends the commands to each server. Never rejects because of one of them. Told in the order of the servers. */
export async function askEach(
  servers: readonly Endpoint[],
  login: RedisLogin,
  commands: readonly Words[],
): Promise<Hearing> {
  const heard = await Promise.all(
    servers.map(async (from): Promise<Told | string> => {
      try {
        return { from, answers: await askOne(from, login, commands) };
      } catch (error) {
        if (error instanceof CoordinatorError) return error.message;
        throw error;
      }
    }),
  );
  return {
    told: heard.filter((one) => typeof one !== "string"),
    faults: heard.filter((one) => typeof one === "string"),
  };
}

/** A server as another one names it; undefined for what is none. */
export function endpointTold(host: unknown, port: unknown): Endpoint | undefined {
  return typeof host === "string" && Number.isInteger(Number(port)) ? { host, port: Number(port) } : undefined;
}

/** Each server once, in the order given. */
export function distinct(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return [...new Map(endpoints.map((endpoint) => [endpointText(endpoint), endpoint])).values()];
}

async function askOne(from: Endpoint, login: RedisLogin, commands: readonly Words[]): Promise<readonly unknown[]> {
  const connection = await RedisConnection.open({ ...login, ...from }, { timeoutMs: LOOKUP_TIMEOUT_MS });
  try {
    const context = { namespace: "" };
    return await connection.ask(context, (redis) =>
      Promise.all(commands.map(([name, ...parameters]) => redis.call(name, ...parameters))),
    );
  } finally {
    await connection.close();
  }
}
