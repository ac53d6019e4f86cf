/** Who waits for its handshake, over real sockets: one a turn, no network before another, and nobody who has not said its first message. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setImmediate as othersTurn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { opened } from "../../../test/hostile/raw-client.js";
import { recordedHello } from "../../../test/hostile/tls-hello.js";
import { HandshakeLine } from "../src/http/handshake-line.js";

const LONG_MS = 60_000;
const HERE = "127.0.0.1";
const ELSEWHERE = "127.0.0.2";

interface Begun {
  readonly network: string | undefined;
  readonly said: string;
  /** Of the event loop. */
  readonly turn: number;
}

/** A line whose handshakes are only noted. */
async function line({ timeoutMs = LONG_MS, mayBegin = (_network: string): boolean => true } = {}) {
  const begun: Begun[] = [];
  const refused: string[] = [];
  const taken: Socket[] = [];
  let turn = 0;
  const waiting = new HandshakeLine({
    timeoutMs,
    mayBegin,
    onRefused: (reason) => refused.push(reason),
    begin: (socket) => {
      begun.push({ network: socket.remoteAddress, said: String(socket.read()), turn });
      socket.resume();
    },
  });
  const server = createServer((socket) => {
    taken.push(socket);
    waiting.add(socket);
  }).listen(0, "0.0.0.0");
  await once(server, "listening");
  const over = new AbortController();
  onTestFinished(() => {
    over.abort();
    for (const socket of taken) socket.destroy();
    server.close();
  });
  void (async () => {
    for (; !over.signal.aborted; turn++) await othersTurn();
  })();
  const { port } = server.address() as AddressInfo;
  const caller = async (from = HERE) => {
    const socket = await opened({ host: HERE, port, from });
    onTestFinished(() => void socket.destroy());
    return socket.resume();
  };
  return { begun, refused, taken, caller, goOn: () => waiting.goOn() };
}

test("however many say all of it in one moment, one begins in each turn", async () => {
  const { begun, taken, caller } = await line();
  const hello = await recordedHello();
  const callers = await Promise.all(Array.from({ length: 50 }, () => caller()));
  // They are taken one a turn, too.
  await expect.poll(() => taken.length).toBe(callers.length);
  for (const socket of callers) socket.write(hello);
  await expect.poll(() => begun.length).toBe(callers.length);
  expect(new Set(begun.map(({ turn }) => turn)).size).toBe(callers.length);
  expect(new Set(begun.map(({ said }) => said))).toEqual(new Set([String(hello)]));
});

test("who says a part of it waits in nobody's way, and begins with all of it", async () => {
  const { begun, taken, caller } = await line();
  const hello = await recordedHello();
  const [slow, other] = [await caller(), await caller()];
  slow.write(hello.subarray(0, -1));
  await expect.poll(() => taken[0]?.bytesRead).toBe(hello.length - 1);
  other.write(hello);
  await expect.poll(() => begun.length).toBe(1);
  slow.write(hello.subarray(-1));
  await expect.poll(() => begun.map(({ said }) => said)).toEqual([String(hello), String(hello)]);
});

test("a network's only caller does not wait for the crowd of another", async () => {
  const { begun, taken, caller } = await line();
  const hello = await recordedHello();
  const crowd = await Promise.all(Array.from({ length: 50 }, () => caller()));
  const alone = await caller(ELSEWHERE);
  await expect.poll(() => taken.length).toBe(51);
  // All of it has come before the first turn.
  for (const socket of [...crowd, alone]) socket.write(hello);
  await expect.poll(() => begun.length).toBe(51);
  expect(begun.findIndex(({ network }) => network === ELSEWHERE)).toBe(1);
});

test("a network that may not begin stands in nobody's way, and goes on when it may", async () => {
  const resting = new Set([HERE]);
  const { begun, caller, goOn } = await line({ mayBegin: (network) => !resting.has(network) });
  const hello = await recordedHello();
  for (const from of [HERE, ELSEWHERE]) (await caller(from)).write(hello);
  await expect.poll(() => begun.map(({ network }) => network)).toEqual([ELSEWHERE]);
  goOn();
  await othersTurn();
  await othersTurn();
  expect(begun).toHaveLength(1);
  resting.clear();
  goOn();
  await expect.poll(() => begun.map(({ network }) => network)).toEqual([ELSEWHERE, HERE]);
});

test("who says nothing, or not all of it, is closed in time", async () => {
  const { begun, refused, caller } = await line({ timeoutMs: 50 });
  const [silent, slow] = [await caller(), await caller()];
  const closed = Promise.all([once(silent, "close"), once(slow, "close")]);
  for (const socket of [silent, slow]) socket.once("end", () => socket.end());
  slow.write((await recordedHello()).subarray(0, 100));
  await closed;
  expect([begun, refused]).toEqual([[], ["ERR_TLS_HANDSHAKE_TIMEOUT", "ERR_TLS_HANDSHAKE_TIMEOUT"]]);
});

test("who says more than a first message can hold is closed, however slowly it is served", async () => {
  const { begun, refused, caller } = await line();
  const greedy = await caller();
  const closed = once(greedy, "close");
  greedy.once("end", () => greedy.end());
  greedy.write(Buffer.concat([await recordedHello(), Buffer.alloc(60_000)]));
  await closed;
  expect([begun, refused]).toEqual([[], ["ERR_SSL_EXCESSIVE_MESSAGE_SIZE"]]);
});

test.each<[string, (socket: Socket) => unknown]>([
  ["is cut off", (socket) => socket.resetAndDestroy()],
  ["ends", (socket) => socket.end()],
])("who %s before all is said is forgotten, and nothing is told of it", async (_, leave) => {
  const { begun, refused, taken, caller } = await line();
  const gone = await caller();
  gone.write((await recordedHello()).subarray(0, 100));
  await expect.poll(() => taken[0]?.bytesRead).toBe(100);
  leave(gone);
  await expect.poll(() => taken[0]?.destroyed).toBe(true);
  expect([begun, refused]).toEqual([[], []]);
});

test("who was told to go while it waited does not begin", async () => {
  const { begun, taken, caller } = await line();
  const hello = await recordedHello();
  const told = await caller();
  await expect.poll(() => taken.length).toBe(1);
  // In the turn in which all of it came.
  taken[0]?.on("readable", () => taken[0]?.destroy());
  told.write(hello);
  await expect.poll(() => taken[0]?.closed).toBe(true);
  expect(begun).toEqual([]);
});
