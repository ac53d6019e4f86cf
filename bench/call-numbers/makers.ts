/** All that are compared: the floor, ours, and the makers of short and unique texts, each at its best setting. */
import { randomUUID } from "node:crypto";
import { type Client, createClient } from "@callnumber/client";
import { fromNumber } from "@callnumber/protocol/codec";
import { createId } from "@paralleldrive/cuid2";
import { Snowflake } from "@sapphire/snowflake";
import FlakeId from "flake-idgen";
import Hashids from "hashids";
import hyperid from "hyperid";
import { nanoid } from "nanoid";
import Sqids from "sqids";
import { monotonicFactory } from "ulid";
import { v7 } from "uuid";
import { countingSource } from "../counting-source.js";
import type { TicketServer } from "./ticket-server.js";
import { awaitedOneByOne, inBatches, intoArray, type Maker, oneByOne } from "./timing.js";

const POOL_COUNT = 1_024;
const CALL_NUMBER_LENGTH = 8;
const BATCH_COUNT = 1_000;
/** More than a turn uses: a loop that does not yield gets no lease. */
const SPARE_RUN_COUNT = 64;
/** hyperid is faster the smaller it is; it makes a new prefix each time that its counter has come so far. */
const HYPERID_MAX_INT = 10_000;

/** The first is the floor, the second ours: the two that every other one is compared with. */
export async function makersWith(tickets: TicketServer): Promise<readonly Maker[]> {
  return [floor(), ...(await ours()), ...peers(), ...ticketServers(tickets)];
}

/** No maker of texts of eight characters can be faster than one that only cuts them out of an existing text. */
function floor(): Maker {
  const pool = Array.from({ length: POOL_COUNT }, (_, index) => fromNumber(index * 137_438_953)).join("");
  let at = 0;
  return oneByOne("the floor: 8 characters cut from a text", () => {
    const text = pool.substring(at, at + CALL_NUMBER_LENGTH);
    at = (at + CALL_NUMBER_LENGTH) % (POOL_COUNT * CALL_NUMBER_LENGTH);
    return text;
  });
}

async function ours(): Promise<readonly Maker[]> {
  const clients = Array.from({ length: 5 }, newClient) as [Client, Client, Client, Client, Client];
  for (const client of clients) await client.next();
  const [one, many, filling, counting, awaited] = clients;
  const bytes = new Uint8Array(BATCH_COUNT * CALL_NUMBER_LENGTH);
  const numbers = new Float64Array(BATCH_COUNT);
  return [
    oneByOne("callnumber: nextSync()", () => one.nextSync()),
    inBatches("callnumber: take(1000)", BATCH_COUNT, () => many.take(BATCH_COUNT)),
    intoArray("callnumber: fillBytes()", bytes, BATCH_COUNT, () => filling.fillBytes(bytes)),
    intoArray("callnumber: fillNumbers()", numbers, BATCH_COUNT, () => counting.fillNumbers(numbers)),
    awaitedOneByOne("callnumber: await next()", () => awaited.next()),
  ];
}

function newClient(): Client {
  return createClient({ source: countingSource(), holder: { name: "bench" }, spareRuns: SPARE_RUN_COUNT });
}

function peers(): readonly Maker[] {
  const nextHyperid = hyperid();
  const nextHyperidMaxInt = hyperid({ maxInt: HYPERID_MAX_INT });
  const ulid = monotonicFactory();
  const flake = new FlakeId();
  const snowflake = new Snowflake(new Date("2020-01-01"));
  const sqids = new Sqids({ blocklist: new Set() });
  const hashids = new Hashids();
  let sqidsCount = 0;
  let hashidsCount = 0;
  return [
    oneByOne("hyperid", () => nextHyperid(), { package: "hyperid", setting: "default" }),
    oneByOne("hyperid with maxInt", () => nextHyperidMaxInt(), {
      package: "hyperid",
      setting: `maxInt ${HYPERID_MAX_INT.toLocaleString("en-US")}`,
    }),
    oneByOne("nanoid", () => nanoid(CALL_NUMBER_LENGTH), { package: "nanoid", setting: "8 characters" }),
    oneByOne("uuid v7", () => v7(), { package: "uuid" }),
    oneByOne("ulid", () => ulid(), { package: "ulid", setting: "monotonic" }),
    oneByOne("flake-idgen", () => untilItSucceeds(() => flake.next().toString("hex")), { package: "flake-idgen" }),
    oneByOne("@sapphire/snowflake", () => snowflake.generate().toString(), { package: "@sapphire/snowflake" }),
    oneByOne("sqids", () => sqids.encode([sqidsCount++]), { package: "sqids", setting: "a counter, no blocklist" }),
    oneByOne("hashids", () => hashids.encode(hashidsCount++), { package: "hashids", setting: "a counter" }),
    oneByOne("@paralleldrive/cuid2", () => createId(), { package: "@paralleldrive/cuid2" }),
    oneByOne("crypto.randomUUID", () => randomUUID(), { setting: "default: cached entropy" }),
  ];
}

/** flake-idgen has 4,096 numbers a millisecond and throws when they are used up; a program can only retry. */
function untilItSucceeds(make: () => string): string {
  for (;;) {
    try {
      return make();
    } catch {
      // The next millisecond.
    }
  }
}

/** What a ticket server costs on this machine, without a network in between. */
function ticketServers(tickets: TicketServer): readonly Maker[] {
  return [
    inBatches("Redis INCR", 1, () => tickets.take(1)),
    inBatches("Redis INCR, 1,000 in a pipeline", BATCH_COUNT, () => tickets.take(BATCH_COUNT)),
  ];
}
