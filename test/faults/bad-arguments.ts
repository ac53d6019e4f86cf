/**
 * Sends the store's own scripts with one number at a time made bad, as a broken caller would. Which numbers there are is seen by
 * watching what coordinators and verbs send, so that none is forgotten.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { NO_CHECKPOINT_FILE } from "../../packages/coordinator/src/guard/checkpoint.js";
import { NamespaceGuard } from "../../packages/coordinator/src/guard/namespace-guard.js";
import { FORKED_SEAL } from "../../packages/coordinator/src/guard/record.js";
import { type ScriptName, scriptNamed } from "../../packages/coordinator/src/stores/redis/scripts.js";
import { initBackdated } from "../backdated.js";
import { TESTER_LOGIN } from "../redis/shipped-users.js";
import type { RedisWorld } from "./redis-world.js";
import { recover } from "./verbs.js";
import { BOUNDS, NAMESPACE } from "./world.js";

const BAD_NUMBERS = ["NaN", "1e3", "-1", "9007199254740993"];
const WATCHED: readonly ScriptName[] = ["lease", "heartbeat", "claim", "confirm", "seal", "recover", "init", "report"];

/** The words of one call of each script, by its name. */
type Calls = ReadonlyMap<ScriptName, readonly string[]>;

/** @throws Error when one of them is taken. */
export async function badArguments(world: RedisWorld): Promise<void> {
  const calls = await watchedCalls(world);
  await world.on(world.server, async (redis) => {
    for (const [name, words] of calls) {
      const [keyCount, ...rest] = words;
      const firstArgument = Number(keyCount);
      for (const [index, word] of rest.entries()) {
        if (index < firstArgument) continue;
        for (const bad of withBadNumber(word)) {
          const answer = redis.eval(scriptNamed(name).text, Number(keyCount), ...rest.with(index, bad));
          const refusal = await answer.then(() => "taken").catch((error: Error) => error.message);
          if (!refusal.startsWith("MISUSE ")) throw new Error(`${name}: ${bad} for argument ${index} was ${refusal}`);
        }
      }
    }
  });
}

/** The word with one of its numbers made bad, each in turn. A lease's word holds several, and then its holder as JSON. */
function withBadNumber(word: string): string[] {
  const [parts = ""] = word.split("{", 1);
  return Array.from(parts.matchAll(/(?<![^ ])\d+(?![^ ])/g)).flatMap(({ 0: { length }, index }) =>
    BAD_NUMBERS.map((bad) => word.slice(0, index) + bad + word.slice(index + length)),
  );
}

async function watchedCalls(world: RedisWorld): Promise<Calls> {
  const calls = new Map<ScriptName, readonly string[]>();
  const watched = await watchCommands(world.server, ([command = "", script = "", ...words]) => {
    const name = WATCHED.find((one) => script === scriptNamed(one).sha1 || script === scriptNamed(one).text);
    if (/^eval/i.test(command) && name !== undefined) calls.set(name, words);
  });
  try {
    await everyStep(world);
    await world.until("every script was called", () => WATCHED.every((name) => calls.has(name)));
    return calls;
  } finally {
    watched.end();
  }
}

/** Whatever makes somebody send each of the scripts. */
async function everyStep(world: RedisWorld): Promise<void> {
  await world.onStore((store) => initBackdated(store, `other-${randomBytes(6).toString("hex")}`));
  await world.killCoordinators();
  await world.onStore(async (store) => {
    const guard = await NamespaceGuard.open({
      store,
      namespace: NAMESPACE,
      checkpointFile: NO_CHECKPOINT_FILE,
      bounds: BOUNDS,
    });
    await guard.seal(FORKED_SEAL);
  });
  await recover(world);
  await world.startCoordinators();
}

/** Calls `hear` with the words of every command that a server is sent, as MONITOR shows it. Resolves when the server shows them. */
async function watchCommands(
  { host, port }: { readonly host: string; readonly port: number },
  hear: (words: readonly string[]) => void,
): Promise<{ end(): void }> {
  const socket = connect(port, host);
  socket.on("error", () => {});
  await once(socket, "connect");
  const lines = createInterface({ input: socket });
  const { username, password } = TESTER_LOGIN;
  socket.write(`AUTH ${username} ${password}\r\nMONITOR\r\n`);
  for (const _ of ["AUTH", "MONITOR"]) await once(lines, "line");
  lines.on("line", (line) => hear(wordsIn(line)));
  return { end: () => void socket.destroy() };
}

/** `+1795261825.657633 [0 127.0.0.1:55858] "incr" "control"`, with C's escapes. */
function wordsIn(line: string): string[] {
  return Array.from(line.matchAll(/"(?:[^"\\]|\\.)*"/g), ([quoted]) => unescaped(quoted));
}

function unescaped(quoted: string): string {
  const asJson = quoted.replace(/\\(?:x([0-9a-f]{2})|a|.)/g, (escape, byte: string | undefined) => {
    if (byte !== undefined) return `\\u00${byte}`;
    return escape === "\\a" ? "\\u0007" : escape;
  });
  return JSON.parse(asJson) as string;
}
