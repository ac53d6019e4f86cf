/**
 * One command to a Redis, its answer, and waiting until the answer is the wanted one.
 * Each command has a connection of its own: nothing is sent twice, and nothing outlives a fault.
 */
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { RespRefusal, type RespValue, readMessage, writeCommand } from "./resp.js";

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
 * Sends one command and resolves to its answer: text as string, numbers as number, nothing as null, lists as arrays.
 * WAIT means nothing here, since it asks for the writes of its own connection only: see `commands`.
 * @throws RespRefusal with Redis's words when it refuses, Error when the connection breaks or there is none. It waits for a frozen server.
 */
export async function command(server: Reachable, ...words: Words): Promise<RespValue> {
  const [answer] = await commands(server, words);
  return answer as RespValue;
}

/**
 * Sends several commands at once on one connection, and resolves to their answers.
 * @throws as `command`, for the first that is refused. Those behind it have been run all the same.
 */
async function commands(server: Reachable, ...list: readonly Words[]): Promise<RespValue[]> {
  const login = credentials(server.url);
  const all = login ? [["AUTH", ...login], ...list] : list;
  const answers = await converse(server, all);
  for (const answer of answers) if (answer instanceof RespRefusal) throw answer;
  return answers.slice(all.length - list.length);
}

/** As `commands`, but a refusal is an answer like any other, and nobody logs in. */
export async function converse({ url, socketPath }: Reachable, list: readonly Words[]): Promise<RespValue[]> {
  const { hostname, port } = new URL(url);
  const socket = connect(socketPath ? { path: socketPath } : { host: hostname, port: Number(port) });
  try {
    return await new Promise((resolve, reject) => {
      let bytes = Buffer.alloc(0);
      const answers: RespValue[] = [];
      socket.on("data", (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk]);
        try {
          for (let message = readMessage(bytes); message; message = readMessage(bytes)) {
            answers.push(message.value);
            bytes = bytes.subarray(message.end);
          }
        } catch (error) {
          reject(error);
        }
        if (answers.length >= list.length) resolve(answers);
      });
      socket.on("error", reject);
      socket.on("close", () => reject(new Error(`${url} closed the connection before it answered`)));
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

function credentials(url: string): string[] | undefined {
  const { username, password } = new URL(url);
  if (password === "") return undefined;
  return [username || "default", password].map(decodeURIComponent);
}
