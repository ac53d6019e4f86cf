/** A server that answers without end what nobody asked: the connection ends once, however many answers have come with the first. */
import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { endConnectionsThatAnswerUnasked } from "../src/stores/redis-unasked.js";

test("a connection is ended once for all unasked answers that came together", () => {
  endConnectionsThatAnswerUnasked();
  const { default: handler } = createRequire(import.meta.url)("ioredis/built/DataHandler.js");
  let endCount = 0;
  const stream = { writable: true };
  const disconnect = () => {
    endCount++;
    stream.writable = false;
  };
  for (let answer = 0; answer < 1_000; answer++) {
    handler.prototype.dispatch.call({ redis: { stream, disconnect } }, () => {
      throw new TypeError("a null where no question waits");
    });
  }
  expect(endCount).toBe(1);
});
