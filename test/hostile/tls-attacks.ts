/** Attacks on the handshake, which is dear for the server and need not be for the caller: none of these computes anything. For a coordinator that speaks HTTPS. */
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import type { Attack } from "./attacks.js";
import { manyOpened } from "./many-callers.js";
import { opened } from "./raw-client.js";
import type { Target } from "./row.js";
import { recordedHello } from "./tls-hello.js";

const SILENT = 2;
const DYING = 2;
const REPEATING_AT_ONCE = 32;
const DRIBBLE_EVERY_MS = 250;
const HANDSHAKE_RECORD = 0x16;
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
      await repeated(target, await recordedHello(), count);
      return [];
    },
  },
  {
    name: "TLS: a recorded first message that asks for the dearest keys, again and again",
    connectionsEach: 1,
    act: async (target, count) => {
      const hello = await recordedHello({ minVersion: "TLSv1.3", ecdhCurve: "ffdhe8192" });
      const answers = await repeated(target, hello, count);
      expect(answers.map((answer) => answer[0])).not.toContain(HANDSHAKE_RECORD);
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

/** So often in all, some at a time. Resolves to what the server said first to each. */
async function repeated(target: Target, hello: Buffer, count: number): Promise<readonly Buffer[]> {
  const answers: Buffer[] = [];
  let begun = 0;
  const repeat = async () => {
    while (begun++ < count) answers.push(await answered(target, hello));
  };
  await Promise.all(Array.from({ length: REPEATING_AT_ONCE }, repeat));
  return answers;
}

/** Resolves when the server has done its part or ended the connection, and dies. */
async function answered(target: Target, hello: Buffer): Promise<Buffer> {
  const socket: Socket = await opened(target);
  const over = new Promise<Buffer>((resolve) => {
    socket.once("data", resolve);
    for (const event of ["end", "close"]) socket.once(event, () => resolve(Buffer.alloc(0)));
  });
  socket.write(hello);
  const answer = await over;
  socket.resetAndDestroy();
  return answer;
}
