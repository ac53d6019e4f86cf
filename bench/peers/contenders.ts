/** All that are compared: the floor, ours, and the makers of short and unique texts that a program could take instead. */
import { randomUUID } from "node:crypto";
import { fromNumber } from "@callnumber/protocol/codec";
import { createId } from "@paralleldrive/cuid2";
import { Snowflake } from "@sapphire/snowflake";
import FlakeId from "flake-idgen";
import Hashids from "hashids";
import hyperid from "hyperid";
import { nanoid } from "nanoid";
import Sqids from "sqids";
import { ulid } from "ulid";
import { v7 } from "uuid";
import { type Contender, inBatches, oneByOne } from "./contender.js";
import { clientOfRisingRuns } from "./rising-source.js";
import type { TicketServer } from "./ticket-server.js";

const FLOOR = "the floor: 8 characters cut from a text";
export const OURS = "callnumber: nextSync()";
export const OURS_IN_THOUSANDS = "callnumber: take(1000)";
export const HYPERID = "hyperid";

const POOL_COUNT = 1_024;
const CALL_NUMBER_LENGTH = 8;
const BATCH_COUNT = 1_000;

/** The first is the floor, the second ours: the two that every other is set beside. */
export async function contendersWith(tickets: TicketServer): Promise<readonly Contender[]> {
  return [floor(), ...(await ours()), ...peers(), ...ticketServers(tickets)];
}

/** No maker of texts of eight characters can be faster than one that only cuts them out of a text that is there already. */
export function floor(): Contender {
  const pool = Array.from({ length: POOL_COUNT }, (_, index) => fromNumber(index * 137_438_953)).join("");
  let place = 0;
  return oneByOne(FLOOR, () => {
    const text = pool.substring(place, place + CALL_NUMBER_LENGTH);
    place = (place + CALL_NUMBER_LENGTH) % (POOL_COUNT * CALL_NUMBER_LENGTH);
    return text;
  });
}

/** The same, a thousand at a time, in an array of their own. */
export function floorInThousands(): Contender {
  const pool = Array.from({ length: BATCH_COUNT }, (_, index) => fromNumber(index * 137_438_953)).join("");
  return inBatches("the floor: a thousand cut into an array", BATCH_COUNT, async () => {
    // As `take` does.
    // oxlint-disable-next-line unicorn/no-new-array
    const texts = new Array<string>(BATCH_COUNT);
    for (let index = 0; index < BATCH_COUNT; index++) {
      texts[index] = pool.substring(index * CALL_NUMBER_LENGTH, (index + 1) * CALL_NUMBER_LENGTH);
    }
    return texts;
  });
}

async function ours(): Promise<readonly Contender[]> {
  const one = clientOfRisingRuns();
  const many = clientOfRisingRuns();
  for (const client of [one, many]) await client.next();
  return [
    oneByOne(OURS, () => one.nextSync()),
    inBatches(OURS_IN_THOUSANDS, BATCH_COUNT, () => many.take(BATCH_COUNT)),
  ];
}

function peers(): readonly Contender[] {
  const nextHyperid = hyperid();
  const snowflake = new Snowflake(new Date("2020-01-01"));
  const sqids = new Sqids({ minLength: CALL_NUMBER_LENGTH });
  const hashids = new Hashids("bench", CALL_NUMBER_LENGTH);
  let sqidsCount = 0;
  let hashidsCount = 0;
  return [
    oneByOne(HYPERID, () => nextHyperid(), { package: "hyperid" }),
    oneByOne("nanoid(8)", () => nanoid(CALL_NUMBER_LENGTH), { package: "nanoid" }),
    oneByOne("uuid v7", () => v7(), { package: "uuid" }),
    oneByOne("ulid", () => ulid(), { package: "ulid" }),
    flakeIdgen(),
    oneByOne("@sapphire/snowflake", () => snowflake.generate().toString(), { package: "@sapphire/snowflake" }),
    oneByOne("sqids of a counter", () => sqids.encode([sqidsCount++]), { package: "sqids" }),
    oneByOne("hashids of a counter", () => hashids.encode(hashidsCount++), { package: "hashids" }),
    oneByOne("@paralleldrive/cuid2", () => createId(), { package: "@paralleldrive/cuid2" }),
    oneByOne("crypto.randomUUID", () => randomUUID()),
  ];
}

/** It has 4,096 numbers a millisecond and throws when they are used up; a program can only try again. */
function flakeIdgen(): Contender {
  const flake = new FlakeId();
  let throwCount = 0;
  const make = (): string => {
    for (;;) {
      try {
        return flake.next().toString("hex");
      } catch {
        throwCount++;
      }
    }
  };
  return oneByOne("flake-idgen", make, { package: "flake-idgen", throwCount: () => throwCount });
}

/** What a ticket server costs on this machine, without a network in between. */
function ticketServers(tickets: TicketServer): readonly Contender[] {
  return [
    inBatches("one Redis INCR a number", 1, () => tickets.take(1)),
    inBatches("one Redis INCR a number, 1,000 in a pipeline", BATCH_COUNT, () => tickets.take(BATCH_COUNT)),
  ];
}
