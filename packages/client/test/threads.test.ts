/** Threads of one process: each loads the client anew and so has runs of its own. */
import { once } from "node:events";
import { join } from "node:path";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { decodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { createClient } from "../src/index.js";
import { ScriptedSource } from "./scripted-source.js";

const THREAD_COUNT = 4;
const COUNT = 3 * SEQUENCE_COUNT;

async function madeInThread(counter: Int32Array): Promise<string[]> {
  const thread = new Worker(join(import.meta.dirname, "minting-thread.mjs"), { workerData: { counter, count: COUNT } });
  const [made] = (await once(thread, "message")) as [string[]];
  await thread.terminate();
  return made;
}

const newCounter = () => new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

describe("threads of one process", () => {
  test("never make a number twice, because each leases runs of its own", async () => {
    const counter = newCounter();
    const made = await Promise.all(Array.from({ length: THREAD_COUNT }, () => madeInThread(counter)));
    expect(new Set(made.flat()).size).toBe(made.flat().length);
    expect(made.flat().length).toBeGreaterThanOrEqual(THREAD_COUNT * COUNT);
    const runs = made.map((numbers) => Array.from(new Set(numbers.map((text) => decodeCallNumber(text).run))));
    expect(new Set(runs.flat()).size).toBe(runs.flat().length);
  });

  test("would repeat numbers on counters of their own: the test before sees what it looks for", async () => {
    const made = await Promise.all([madeInThread(newCounter()), madeInThread(newCounter())]);
    expect(new Set(made.flat()).size).toBeLessThan(made.flat().length);
  });

  test("can't be sent a client: what arrives makes no numbers", async () => {
    const client = createClient({ source: new ScriptedSource(), holder: { name: "test" } });
    await client.next();
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(client);
    expect(receiveMessageOnPort(port2)).toEqual({ message: {} });
    port1.close();
    await client.close();
  });
});
