/**
 * One command to a Redis, its answer, and waiting until the answer is the wanted one.
 * Each command has a connection of its own: nothing is sent twice, and nothing outlives a fault.
 */
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { messageReader, RespRefusal, type RespValue, writeCommand } from "./resp.js";

/** Where a server is reached. A path is that of its Unix socket, and goes before the address in `url`. */
export interface Reachable {
  /** `redis://user:password@host:port`; user and password where it has them. */
  readonly url: string;
  readonly socketPath?: string | undefined;
}

const ASK_EVERY_MS = 10;
/** A safety net: what was waited for then says more than the time limit of a test. */
const WAIT_LIMIT_MS = 300_000;

type Words = readonly (string | number)[];

/**
 * Sends one command and resolves to its reply: text as string, numbers as number, nothing as null, lists as arrays. WAIT means nothing
 * here, since it asks for the writes of its own connection only.
 * @throws RespRefusal with Redis's words when it refuses, Error when the connection breaks or there is none. It waits for a frozen server.
 */
export async function command(server: Reachable, ...words: Words): Promise<RespValue> {
  const { username, password } = new URL(server.url);
  const login = [username || "default", password].map(decodeURIComponent);
  const replies = await converse(server, password === "" ? [words] : [["AUTH", ...login], words]);
  for (const reply of replies) if (reply instanceof RespRefusal) throw reply;
  return replies.at(-1) as RespValue;
}

/** Resolves to the fields of a hash. Their order means nothing, and Valkey changes it by itself. @throws as `command`. */
export async function hashAt(server: Reachable, key: string): Promise<ReadonlyMap<RespValue, RespValue>> {
  const flat = (await command(server, "HGETALL", key)) as RespValue[];
  return new Map(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] as RespValue] as const] : [])));
}

/** Sends several commands at once on one connection, without a login. A refusal is a reply like any other. */
export async function converse({ url, socketPath }: Reachable, list: readonly Words[]): Promise<RespValue[]> {
  const { hostname, port } = new URL(url);
  const socket = connect(socketPath ? { path: socketPath } : { host: hostname, port: Number(port) });
  try {
    return await new Promise((resolve, reject) => {
      const repliesIn = messageReader();
      const replies: RespValue[] = [];
      socket.on("data", (chunk: Buffer) => {
        try {
          for (const { value } of repliesIn(chunk)) replies.push(value);
        } catch (error) {
          reject(error);
        }
        if (replies.length >= list.length) resolve(replies);
      });
      socket.on("error", reject);
      socket.on("close", () => reject(new Error(`${url} closed the connection before it replied`)));
      socket.write(list.map(writeCommand).join(""));
    });
  } finally {
    socket.destroy();
  }
}

/** The lines of INFO by name, for example `master_link_status`. */
export async function info(server: Reachable): Promise<Readonly<Record<string, string>>> {
  return linesByName(await command(server, "INFO"));
}

/** `name:value` lines, as INFO and CLUSTER INFO answer them. */
export function linesByName(text: RespValue): Readonly<Record<string, string>> {
  const lines = String(text).matchAll(/^([^#:\s]+):(.*?)\r?$/gm);
  return Object.fromEntries([...lines].map(([, name, value]) => [name, value]));
}

/**
 * Asks until `isWanted` holds for the answer, and resolves to it. A server that cannot be asked yet is asked again.
 * @throws Error that says what was waited for, and the last answer, when it never comes.
 */
export async function until<Answer>(
  what: string,
  ask: () => Promise<Answer>,
  isWanted: (answer: Answer) => boolean,
): Promise<Answer> {
  const givenUpAt = Date.now() + WAIT_LIMIT_MS;
  let last: unknown;
  do {
    try {
      const answer = await ask();
      if (isWanted(answer)) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    await delay(ASK_EVERY_MS);
  } while (Date.now() < givenUpAt);
  const seen = last instanceof Error ? last.message : JSON.stringify(last, undefined, 1);
  throw new Error(`waited ${WAIT_LIMIT_MS} ms in vain until ${what}; last seen: ${seen}`);
}

/** Resolves when the lines of INFO are as wanted, for example `{ role: "master" }`. */
export async function untilInfo(server: Reachable, wanted: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(wanted);
  const what = `INFO of ${server.url} has ${lines.map((line) => line.join(":")).join(", ")}`;
  const onlyWanted = async () => {
    const seen = await info(server);
    return lines.map(([name, value]) => [name, seen[name], value]);
  };
  await until(what, onlyWanted, (seen) => seen.every(([, value, wish]) => value === wish));
}
