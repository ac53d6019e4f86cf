/**
 * How `resume` reaches the process that paused: a Unix socket in a folder of this user's own. Nothing secret crosses it; the
 * secret stays in the memory of the process that paused.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { lstatSync, rmSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env, getuid } from "node:process";
import { text } from "node:stream/consumers";
import { makePrivateFolder } from "../private-file.js";

export interface ResumeWish {
  readonly nodeCount: number | undefined;
}

/** What the pausing process answers: what `resume` prints, or the failure. */
export type ResumeAnswer =
  | { readonly highWaterMark: number; readonly generation: number }
  | { readonly code: string; readonly message: string };

/**
 * Answers the wish of one `resume`; then the server is closed.
 * @throws Error when another process of this user holds the same pause, or the folder is somebody else's.
 */
export async function awaitResume(
  place: string,
  answer: (wish: ResumeWish) => Promise<ResumeAnswer>,
): Promise<{ readonly server: Server; readonly resumed: Promise<ResumeAnswer> }> {
  const path = socketPath(place);
  if (await isAnswered(path)) throw new Error(`another process holds a pause of ${place}`);
  rmSync(path, { force: true });
  const server = createServer({ allowHalfOpen: true });
  const resumed = new Promise<ResumeAnswer>((resolve) => {
    server.on("connection", (socket) => {
      socket.on("error", () => {});
      void text(socket).then(async (asked) => {
        // Somebody only looked whether anybody is there.
        if (asked === "") return socket.end();
        const given = await answer(JSON.parse(asked) as ResumeWish);
        // Only then may this process end.
        socket.end(JSON.stringify(given), () => resolve(given));
      });
    });
  });
  server.listen(path);
  await once(server, "listening");
  return { server, resumed };
}

/** Asks the process that paused; undefined when there is none on this machine. */
export async function askToResume(place: string, wish: ResumeWish): Promise<ResumeAnswer | undefined> {
  const socket = connect({ path: socketPath(place), allowHalfOpen: true });
  try {
    await once(socket, "connect");
  } catch {
    return undefined;
  }
  socket.end(JSON.stringify(wish));
  return JSON.parse(await text(socket)) as ResumeAnswer;
}

async function isAnswered(path: string): Promise<boolean> {
  const socket = connect({ path });
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** A socket's path may have 107 bytes. */
function socketPath(place: string): string {
  const folder = env["XDG_RUNTIME_DIR"] ?? join(tmpdir(), `callnumber-${getuid?.() ?? "user"}`);
  makePrivateFolder(folder);
  const { uid, mode } = lstatSync(folder);
  if (getuid !== undefined && (uid !== getuid() || (mode & 0o022) !== 0)) {
    throw new Error(`the folder ${folder} is not this user's own; give another one as XDG_RUNTIME_DIR`);
  }
  return join(folder, `pause-${createHash("sha256").update(place).digest("hex").slice(0, 24)}.sock`);
}
