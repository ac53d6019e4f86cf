/** Callers that are slow, die, or only sit there: they hold what others need, and must not hold it for long. */
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { opened, type Received, sendBytes } from "./raw-client.js";
import { leaseBody, type Row, request, type Target } from "./row.js";

const NOTHING: Received = { text: "", statuses: [], isClosed: true };
/** Beyond the time that headers, and whole requests, may take. */
const OVER_MS = 60_000;

function row(input: string, statuses: readonly number[], act: Row["act"], more: Partial<Row> = {}): Row {
  return { family: "waiting", input, statuses, act, ...more };
}

const right = (target: Target) => request(target, { body: leaseBody() });

/** Quick in `npm test`; what waits for a time limit is of the long form. */
export const WAITING_ROWS: readonly Row[] = [
  row("half a head, then its own half closed", [400], (target) =>
    sendBytes(target, [right(target).subarray(0, 40)], { thenEnd: true }),
  ),
  row("half a body, then its own half closed", [400], (target) =>
    sendBytes(target, [right(target).subarray(0, -10)], { thenEnd: true }),
  ),
  row("nothing, then its own half closed", [], (target) => sendBytes(target, [], { thenEnd: true })),
  row("a head, and dead before its body", [], async (target) => {
    const socket = await opened(target);
    socket.write(right(target).subarray(0, -20));
    await pause(5);
    socket.resetAndDestroy();
    return NOTHING;
  }),
  row(
    "1,000 callers that die in the middle of a request",
    [],
    async (target) => {
      for (let index = 0; index < 1_000 * target.share; index++) {
        const socket = await opened(target);
        const bytes = right(target);
        socket.write(bytes.subarray(0, 1 + ((index * 37) % (bytes.length - 2))));
        if (index % 3 === 0) await pause(1);
        if (index % 2 === 0) socket.resetAndDestroy();
        else socket.destroy();
      }
      return NOTHING;
    },
    { isOnce: true },
  ),
  row(
    "3,000 connections opened and closed",
    [],
    async (target) => {
      for (let index = 0; index < 3_000 * target.share; index++) (await opened(target)).destroy();
      return NOTHING;
    },
    { isOnce: true },
  ),
  row("10,000 sockets that say nothing", [], (target) => withSockets(target, 10_000, async () => pause(1_000)), {
    isOnce: true,
  }),
  row(
    "500 callers that send a byte now and then",
    [],
    (target) =>
      withSockets(target, 500, async (sockets) => {
        const bytes = right(target);
        for (let sent = 0; sent < 20; sent++) {
          for (const socket of sockets) if (socket.writable) socket.write(bytes.subarray(sent, sent + 1));
          await pause(100);
        }
      }),
    { isOnce: true },
  ),
  row(
    "500 callers, each with half a body",
    [],
    (target) =>
      withSockets(target, 500, async (sockets) => {
        for (const socket of sockets) if (socket.writable) socket.write(right(target).subarray(0, -1));
        await pause(500);
      }),
    { isOnce: true },
  ),
];

/** What the time limits end: seconds each. */
export const LONG_WAITING_ROWS: readonly Row[] = [
  row("a socket that says nothing, to the end", [408], (target) => sendBytes(target, [], { waitMs: OVER_MS }), {
    isOnce: true,
  }),
  row(
    "half a head, to the end",
    [408],
    (target) => sendBytes(target, [right(target).subarray(0, 40)], { waitMs: OVER_MS }),
    { isOnce: true },
  ),
  row(
    "half a body, to the end",
    [408],
    (target) => sendBytes(target, [right(target).subarray(0, -1)], { waitMs: OVER_MS }),
    { isOnce: true },
  ),
  row(
    "a byte of a body a second, to the end",
    [408],
    (target) => {
      const bytes = right(target);
      const slow = [...bytes.subarray(-25, -1)].flatMap((byte) => [Buffer.from([byte]), 1_000]);
      return sendBytes(target, [bytes.subarray(0, -25), ...slow], { waitMs: OVER_MS });
    },
    { isOnce: true },
  ),
];

/** Opens so many side by side, does something with them, and ends them. */
async function withSockets(
  target: Target,
  count: number,
  act: (sockets: readonly Socket[]) => Promise<unknown>,
): Promise<Received> {
  const sockets: Socket[] = [];
  const wanted = Math.ceil(count * target.share);
  while (sockets.length < wanted) {
    const several = Array.from({ length: Math.min(100, wanted - sockets.length) }, () => opened(target));
    sockets.push(...(await Promise.all(several)));
  }
  await act(sockets);
  for (const socket of sockets) socket.destroy();
  return NOTHING;
}
