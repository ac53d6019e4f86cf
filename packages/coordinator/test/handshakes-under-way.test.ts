/** How many handshakes may be under way, and which of them goes for the next: on sockets that are nobody's. */
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { HandshakesUnderWay } from "../src/http/handshakes-under-way.js";

function from(remoteAddress: string): Socket {
  return Object.defineProperty(new Socket(), "remoteAddress", { value: remoteAddress });
}

function several(count: number, address: string): readonly Socket[] {
  return Array.from({ length: count }, () => from(address));
}

const gone = (sockets: readonly Socket[]) => sockets.map(({ destroyed }) => destroyed);

test("when one more begins, the first of the network that has most of them goes", () => {
  const underWay = new HandshakesUnderWay(4);
  const [alone, ...crowd] = [from("10.0.0.1"), ...several(4, "10.0.0.2")] as [Socket, ...Socket[]];
  for (const socket of [alone, ...crowd]) underWay.begin(socket);
  expect([alone.destroyed, gone(crowd)]).toEqual([false, [true, false, false, false]]);
  underWay.begin(from("10.0.0.3"));
  expect([alone.destroyed, gone(crowd)]).toEqual([false, [true, true, false, false]]);
});

test("those that ended take no place, and are never closed for it", async () => {
  const underWay = new HandshakesUnderWay(2);
  const [done, cut, ...others] = several(4, "10.0.0.2") as [Socket, Socket, ...Socket[]];
  underWay.begin(done);
  underWay.begin(cut);
  underWay.end(done);
  cut.destroy();
  await expect.poll(() => cut.closed).toBe(true);
  for (const socket of others) underWay.begin(socket);
  expect([done.destroyed, gone(others)]).toEqual([false, [false, false]]);
});
