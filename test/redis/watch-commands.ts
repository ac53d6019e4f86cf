/** Every command that a server is sent, as MONITOR tells it: also those inside scripts, which are nobody's. */
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { TESTER_LOGIN } from "./shipped-users.js";

export interface WatchedCommands {
  end(): void;
}

/** Resolves when the server tells. `hear` gets the words of each command. */
export async function watchCommands(
  { host, port }: { readonly host: string; readonly port: number },
  hear: (words: readonly string[]) => void,
): Promise<WatchedCommands> {
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
