/** Attacks on the handshake, which is dear for the server and need not be for the caller: none of these computes anything. For a coordinator that speaks HTTPS. */
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Attack } from "./attacks.js";
import { manyOpened } from "./many-callers.js";
import { opened } from "./raw-client.js";
import type { Target } from "./row.js";
import { recordedHello } from "./tls-hello.js";

const SILENT = 2;
const DYING = 2;
const REPEATING_AT_ONCE = 32;
const DRIBBLE_EVERY_MS = 250;
/** Longer than a handshake may take. */
const PATIENCE_MS = 11_000;

export const TLS_ATTACKS: readonly Attack[] = [
  {
    name: "TLS: connections that never begin a handshake",
    connectionsEach: SILENT,
    act: async (target, count) => {
      const sockets = await manyOpened(target, SILENT * count);
      await pause(PATIENCE_MS);
      return sockets;
    },
  },
  {
    name: "TLS: first messages, a few bytes now and then",
    connectionsEach: 1,
    act: async (target, count) => {
      const [hello, sockets] = [await recordedHello(), await manyOpened(target, count)];
      const endsAtMs = performance.now() + PATIENCE_MS;
      for (let sent = 0; performance.now() < endsAtMs; sent++) {
        for (const socket of sockets) if (socket.writable) socket.write(hello.subarray(sent, sent + 1));
        await pause(DRIBBLE_EVERY_MS);
      }
      return sockets;
    },
  },
  {
    name: "TLS: recorded first messages in one moment, and nothing more",
    connectionsEach: 1,
    act: async (target, count) => {
      const [hello, sockets] = [await recordedHello(), await manyOpened(target, count)];
      for (const socket of sockets) socket.write(hello);
      await pause(PATIENCE_MS);
      return sockets;
    },
  },
  {
    name: "TLS: a recorded first message, again and again",
    connectionsEach: 1,
    act: async (target, count) => {
      const hello = await recordedHello();
      let begun = 0;
      const repeat = async () => {
        while (begun++ < count) await answered(target, hello);
      };
      await Promise.all(Array.from({ length: REPEATING_AT_ONCE }, repeat));
      return [];
    },
  },
  {
    name: "TLS: callers that die in the middle of a handshake",
    connectionsEach: DYING,
    act: async (target, count) => {
      const hello = await recordedHello();
      for (let index = 0; index < DYING * count; index++) {
        const socket = await opened(target);
        socket.write(hello.subarray(0, 1 + ((index * 37) % hello.length)));
        if (index % 4 === 0) await pause(2);
        if (index % 2 === 0) socket.resetAndDestroy();
        else socket.destroy();
      }
      return [];
    },
  },
];

/** Resolves when the server has done its part or ended the connection, and dies. */
async function answered(target: Target, hello: Buffer): Promise<void> {
  const socket: Socket = await opened(target);
  const over = new Promise<void>((resolve) => {
    for (const event of ["data", "end", "close"]) socket.once(event, () => resolve());
  });
  socket.write(hello);
  await over;
  socket.resetAndDestroy();
}
