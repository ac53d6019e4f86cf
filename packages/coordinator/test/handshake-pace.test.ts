/** When a network may begin its next handshake, where a caller's certificates are dear: on sockets that are nobody's. */
import { Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { HandshakePace } from "../src/http/handshake-pace.js";

const HERE = "10.0.0.1";
const ELSEWHERE = "10.0.0.2";
const LONG_MS = 60_000;

function pace(patienceMs = LONG_MS) {
  const onFree = vi.fn();
  const handshakes = new HandshakePace({ onFree, patienceMs });
  const begun = (network: string) => {
    const socket = Object.assign(new Socket(), { said: 0 });
    Object.defineProperty(socket, "bytesRead", { get: () => socket.said });
    handshakes.begin(socket, network);
    return socket;
  };
  return { handshakes, begun, onFree };
}

test("four of a network are under way; another may begin behind one that ended, well or not", async () => {
  const { handshakes, begun, onFree } = pace();
  const [good, bad] = Array.from({ length: 4 }, () => begun(HERE)) as readonly Socket[] as [Socket, Socket];
  expect([HERE, ELSEWHERE].map((network) => handshakes.mayBegin(network))).toEqual([false, true]);
  handshakes.letIn(good);
  expect([handshakes.mayBegin(HERE), onFree.mock.calls.length]).toEqual([true, 1]);
  begun(HERE);
  expect(handshakes.mayBegin(HERE)).toBe(false);
  bad.destroy();
  await expect.poll(() => handshakes.mayBegin(HERE)).toBe(true);
  expect(onFree).toHaveBeenCalledTimes(2);
  // Its end costs nothing any more.
  good.destroy();
  await expect.poll(() => good.closed).toBe(true);
  expect(onFree).toHaveBeenCalledTimes(2);
});

test("another may begin when the first takes too long, and it is the first that goes then", async () => {
  const { handshakes, begun, onFree } = pace(20);
  const several = Array.from({ length: 4 }, () => begun(HERE));
  await expect.poll(() => onFree.mock.calls.length).toBeGreaterThan(0);
  await expect.poll(() => handshakes.mayBegin(HERE)).toBe(true);
  expect(several.map(({ destroyed }) => destroyed)).toEqual([false, false, false, false]);
  begun(HERE);
  expect(several.map(({ destroyed }) => destroyed)).toEqual([true, false, false, false]);
});

test("a network whose handshake failed waits by what it said, and then goes on; one that was let in does not", async () => {
  const { handshakes, begun, onFree } = pace();
  const [known, stranger] = [begun(ELSEWHERE), begun(HERE)];
  known.said = 2_000_000;
  stranger.said = 5_000;
  handshakes.letIn(known);
  onFree.mockClear();
  const closed = new Promise<readonly boolean[]>((resolve) => {
    stranger.once("close", () => resolve([HERE, ELSEWHERE].map((network) => handshakes.mayBegin(network))));
  });
  stranger.destroy();
  expect(await closed).toEqual([false, true]);
  await expect.poll(() => handshakes.mayBegin(HERE)).toBe(true);
  // Once for its place, once for its rest.
  expect(onFree).toHaveBeenCalledTimes(2);
});
