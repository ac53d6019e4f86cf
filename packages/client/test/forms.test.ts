/** Every way to ask for numbers, mixed: as text, as bytes, as plain numbers. Guarantees: G9 (docs/guarantees.md). */
import { type CallNumber, decodeCallNumber, fromNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { afterEach, expect, inject, test } from "vitest";
import { seededBelow } from "../../../test/faults/seeded-random.js";
import { sized } from "../../../test/size-of-run.js";
import { type Client, type ClientOptions, createClient, TAKE_COUNT_MAX } from "../src/index.js";
import { ScriptedSource } from "./scripted-source.js";

const clients: Client[] = [];

/** No request times out: the runs of one would be a gap. */
function newClient(source = new ScriptedSource(), options: Partial<ClientOptions> = {}): Client {
  const client = createClient({ source, holder: { name: "forms" }, requestTimeoutMs: 600_000, ...options });
  clients.push(client);
  return client;
}

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

async function bytesOf(client: Client, count: number): Promise<string[]> {
  const bytes = new Uint8Array(count * 8);
  await client.fillBytes(bytes);
  return Buffer.from(bytes).toString("latin1").match(/.{8}/gs) ?? [];
}

async function numbersOf(client: Client, count: number): Promise<string[]> {
  const numbers = new Float64Array(count);
  await client.fillNumbers(numbers);
  return Array.from(numbers, (number) => fromNumber(number));
}

async function iterated(client: Client, count: number): Promise<string[]> {
  const made: CallNumber[] = [];
  for await (const callNumber of client) if (made.push(callNumber) === count) break;
  return made;
}

async function together(client: Client, count: number): Promise<string[]> {
  return await Promise.all(Array.from({ length: count }, () => client.next()));
}

async function atOnce(client: Client, count: number): Promise<string[]> {
  const made = [await client.next()];
  while (made.length < count) {
    try {
      made.push(client.nextSync());
    } catch {
      made.push(await client.next());
    }
  }
  return made;
}

async function readied(client: Client, count: number): Promise<string[]> {
  const made: string[] = [];
  while (made.length < count) {
    await client.ready(count - made.length);
    try {
      while (made.length < count) made.push(client.nextSync());
    } catch {
      // Other callers were faster.
    }
  }
  return made;
}

const FORMS: readonly ((client: Client, count: number) => Promise<string[]>)[] = [
  (client, count) => client.take(count),
  bytesOf,
  numbersOf,
  iterated,
  together,
  atOnce,
  readied,
];

/** Where the number stands among all of its run and of the runs before. */
function placeOf(callNumber: string): number {
  const { version, run, sequence } = decodeCallNumber(callNumber);
  if (version !== 0) expect.fail(`${callNumber} is of version ${version}`);
  return (run - 1) * SEQUENCE_COUNT + sequence;
}

test("one caller of all forms gets many numbers in order, without a gap, across every change of run and text", async () => {
  const client = newClient();
  const random = seededBelow(inject("seed"));
  let place = 0;
  while (place < sized(100_000, 1_000_000)) {
    const form = FORMS[random(FORMS.length)] as (typeof FORMS)[number];
    const count = 1 + (random(8) === 0 ? random(40_000) : random(3_000));
    const made = await form(client, count);
    expect(made).toHaveLength(count);
    for (const callNumber of made) {
      if (placeOf(callNumber) !== place) expect.fail(`${callNumber} came as number ${place}, from a call for ${count}`);
      place++;
    }
  }
});

test("many callers of all forms at the same time never share a number, and discard none", async () => {
  const client = newClient();
  const callers = Array.from({ length: 12 }, async (_, caller) => {
    const made: string[] = [];
    for (let turn = 0; turn < 12; turn++) {
      const form = FORMS[(caller + turn) % FORMS.length] as (typeof FORMS)[number];
      made.push(...(await form(client, 1 + ((caller * 997 + turn * 131) % 2_500))));
    }
    return made;
  });
  const made = (await Promise.all(callers)).flat();
  const places = Float64Array.from(made, placeOf).sort();
  expect(places.length).toBeGreaterThan(10 * SEQUENCE_COUNT);
  places.forEach((place, index) => {
    if (place !== index) expect.fail(`number ${index} is missing or doubled: ${place}`);
  });
});

test("a loop over buffered numbers lets the event loop turn, so that a response can arrive", async () => {
  let answer = () => {};
  // The refill is not answered meanwhile: all that could let the loop turn is the client.
  const source = new ScriptedSource()
    .answer((lease) => lease)
    .always(() => new Promise<void>((resolve) => (answer = resolve)));
  const client = newClient(source, { spareRuns: 64 });
  await client.next();
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  for (let call = 0; call < 12 * SEQUENCE_COUNT; call++) await client.next();
  clearInterval(timer);
  answer();
  expect(source.requests).toHaveLength(2);
  expect(turns).toBeGreaterThan(0);
});

test("a filled array holds nothing but the numbers, in a view of a larger buffer too", async () => {
  const buffer = new ArrayBuffer(100).slice(0);
  await newClient().fillBytes(new Uint8Array(buffer, 3, 80));
  const text = Buffer.from(buffer).toString("latin1");
  expect(text.slice(0, 3)).toBe("\0\0\0");
  expect(text.slice(83)).toBe("\0".repeat(17));
  expect((text.slice(3, 83).match(/.{8}/gs) ?? []).map(placeOf)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("a filled array holds the numbers of several runs in order, as bytes and as numbers", async () => {
  const client = newClient();
  const count = 2.5 * SEQUENCE_COUNT;
  const made = [...(await bytesOf(client, count)), ...(await numbersOf(client, count))];
  expect(made.findIndex((callNumber, index) => placeOf(callNumber) !== index)).toBe(-1);
  expect(made).toHaveLength(2 * count);
});

test("an array to be filled may be as long as the largest lease", async () => {
  const numbers = new Float64Array(TAKE_COUNT_MAX);
  await newClient().fillNumbers(numbers);
  expect(placeOf(fromNumber(numbers.at(-1) as number))).toBe(TAKE_COUNT_MAX - 1);
});

test.each([
  ["no array", "00000001", TypeError, /Uint8Array/],
  ["another array", new Float64Array(8), TypeError, /Uint8Array/],
  ["an empty one", new Uint8Array(0), RangeError, /not 0/],
  ["one with room for half a number", new Uint8Array(12), RangeError, /not 1.5/],
  ["one that is too long", new Uint8Array((TAKE_COUNT_MAX + 1) * 8), RangeError, /not 1048577/],
])("fillBytes() rejects %s, and uses no number", async (_, target, kind, words) => {
  const client = newClient();
  const refusal = await client.fillBytes(target as Uint8Array).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(kind);
  expect((refusal as Error).message).toMatch(words);
  expect(placeOf(await client.next())).toBe(0);
});

test.each([
  ["no array", [1, 2], TypeError],
  ["another array", new Uint8Array(8), TypeError],
  ["an empty one", new Float64Array(0), RangeError],
  ["one that is too long", new Float64Array(TAKE_COUNT_MAX + 1), RangeError],
])("fillNumbers() rejects %s, and uses no number", async (_, target, kind) => {
  const client = newClient();
  await expect(client.fillNumbers(target as Float64Array)).rejects.toBeInstanceOf(kind);
  expect(placeOf(await client.next())).toBe(0);
});

test("an array that is detached while it is filled is rejected, and its numbers are never returned again", async () => {
  const client = newClient();
  const bytes = new Uint8Array(2 * SEQUENCE_COUNT * 8);
  const numbers = new Float64Array(2 * SEQUENCE_COUNT);
  const calls = [client.fillBytes(bytes), client.fillNumbers(numbers)];
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  structuredClone(numbers.buffer, { transfer: [numbers.buffer] });
  for (const call of calls) await expect(call).rejects.toThrow(/taken away/);
  expect(placeOf(await client.next())).toBeGreaterThan(0);
});
