/**
 * However many ask at the same moment, a turn of the event loop comes to its end: what waits for that, a timer or a place, does not wait for all of
 * them. Over real sockets, more of them than the platform looks at in one go.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import type { Door } from "../src/http/access.js";
import { createServer } from "../src/http/server.js";
import { BEGUN_IN_TURN_MAX } from "../src/http/turns.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { TokensInHand } from "./tokens-in-hand.js";

const STRANGERS = 1_500;
const KNOWN = 10;
const PATH = "GET /v1/namespaces/main/status HTTP/1.1\r\nhost: 127.0.0.1\r\n";
const QUESTION = `${PATH}\r\n`;
const QUESTION_WITH_TOKEN = `${PATH}authorization: Bearer good\r\n\r\n`;

/** Each request that begins asks it. */
function watchedDoor() {
  const tokens = new TokensInHand();
  tokens.add("good", "read");
  const watched = { begunInTurns: [] as number[], areKnown: [] as boolean[], door: tokens as Door };
  let begunCount = 0;
  watched.door = {
    knows: (caller) => tokens.knows(caller),
    callerOf(request) {
      if (begunCount++ === 0) {
        setImmediate(() => {
          watched.begunInTurns.push(begunCount);
          begunCount = 0;
        });
      }
      const caller = tokens.callerOf(request);
      watched.areKnown.push(caller !== undefined);
      return caller;
    },
  };
  return watched;
}

async function answered(socket: Socket, status: number): Promise<void> {
  const [part] = (await once(socket, "data")) as [Buffer];
  expect(part.toString("latin1")).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
}

test("what comes beyond so many waits for later turns, and who was let in before does not wait for strangers", async () => {
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
  await coordinator.initNamespace("main");
  const watched = watchedDoor();
  const server = await createServer({ coordinator, release: "0", door: watched.door });
  onTestFinished(() => server.stop());
  const port = Number(new URL(await server.listen({ host: "127.0.0.1", port: 0 })).port);
  const opened = async () => {
    const socket = connect({ port, host: "127.0.0.1" });
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  const strangers: Socket[] = [];
  while (strangers.length < STRANGERS) {
    strangers.push(...(await Promise.all(Array.from({ length: 100 }, opened))));
  }
  const known = await Promise.all(Array.from({ length: KNOWN }, opened));
  for (const socket of known) {
    const isAnswered = answered(socket, 200);
    socket.write(QUESTION_WITH_TOKEN);
    await isAnswered;
  }
  for (const list of [watched.begunInTurns, watched.areKnown]) list.length = 0;
  const areAnswered = [
    ...strangers.map((socket) => answered(socket, 401)),
    ...known.map((socket) => answered(socket, 200)),
  ];
  for (const socket of strangers) socket.write(QUESTION);
  for (const socket of known) socket.write(QUESTION_WITH_TOKEN);
  await Promise.all(areAnswered);
  expect(watched.areKnown).toHaveLength(STRANGERS + KNOWN);
  expect(Math.max(...watched.begunInTurns)).toBeLessThanOrEqual(2 * BEGUN_IN_TURN_MAX);
  expect(watched.areKnown.lastIndexOf(true)).toBeLessThan(STRANGERS / 2);
});
