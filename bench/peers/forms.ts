/** All ways to take numbers from our client, beside the floor. */
import type { Client } from "@callnumber/client";
import { figure, quantile, spreadInWords } from "../quantiles.js";
import type { Section } from "../report.js";
import { type Contender, inBatches, oneByOne } from "./contender.js";
import { floor, floorInThousands } from "./contenders.js";
import { clientOfRisingRuns } from "./rising-source.js";
import { type Rounds, type Timed, timeInTurns } from "./rounds.js";

const BATCH_COUNT = 1_000;
const MIXED_CALL_COUNT = 1_000_000;

export async function formsSection(roundCount: number): Promise<Section> {
  const contenders = [floor(), floorInThousands(), ...(await forms())];
  const timed = await timeInTurns(contenders, roundCount);
  const base = timed[0] as Timed;
  return {
    heading: "The ways to take them",
    sentences: [
      "As before, kept and read. `takeBytes` and `takeNumbers` fill one array of a thousand again and again; to read is to add up its bytes " +
        `or numbers. The client that mixed had answered a million calls of all these forms before, in turns.`,
    ],
    table: {
      columns: ["way", "kept: ns a number", "times the floor", "read: ns a number", "times the floor"],
      rows: contenders.map(({ name }, index) => {
        const { keptNs, readNs } = timed[index] as Timed;
        return [name].concat(besides(keptNs, base.keptNs), besides(readNs, base.readNs));
      }),
    },
  };
}

function besides(rounds: Rounds, base: Rounds): string[] {
  return [figure(quantile(rounds, 0.5)), spreadInWords(rounds.map((ns, round) => ns / (base[round] as number)))];
}

async function forms(): Promise<readonly Contender[]> {
  const clients = Array.from({ length: 11 }, () => clientOfRisingRuns());
  await Promise.all(clients.map((client) => client.next()));
  const [one, thousands, bytes, numbers, awaited, iterated, mixed, ...four] = clients as [
    Client,
    Client,
    Client,
    Client,
    Client,
    Client,
    Client,
    ...Client[],
  ];
  await mix(mixed);
  let turn = 0;
  return [
    oneByOne("nextSync()", () => one.nextSync()),
    oneByOne("nextSync() of a client that mixed", () => mixed.nextSync()),
    oneByOne("nextSync() of four clients in turns", () => (four[turn++ & 3] as Client).nextSync()),
    inBatches("take(1000)", BATCH_COUNT, () => thousands.take(BATCH_COUNT)),
    inArray("takeBytes()", new Uint8Array(BATCH_COUNT * 8), (room) => bytes.takeBytes(room)),
    inArray("takeNumbers()", new Float64Array(BATCH_COUNT), (room) => numbers.takeNumbers(room)),
    awaitedOneByOne("await next()", () => awaited.next()),
    looped("for await", iterated),
  ];
}

/** Every form in turns. */
async function mix(client: Client): Promise<void> {
  const [bytes, numbers] = [new Uint8Array(80), new Float64Array(10)];
  for (let call = 0; call < MIXED_CALL_COUNT; call += 6) {
    await client.next();
    client.nextSync();
    await client.take(7);
    await client.takeBytes(bytes);
    await client.takeNumbers(numbers);
    for await (const _ of client) break;
  }
}

function inArray<T extends Uint8Array | Float64Array>(
  name: string,
  room: T,
  fill: (room: T) => Promise<void>,
): Contender {
  return {
    name,
    batchCount: BATCH_COUNT,
    collect: () => {},
    keep: async (_, count) => {
      for (let made = 0; made < count; made += BATCH_COUNT) await fill(room);
    },
    read: async (count) => {
      let sum = 0;
      for (let made = 0; made < count; made += BATCH_COUNT) {
        await fill(room);
        for (let at = 0; at < room.length; at++) sum += room[at] as number;
      }
      return sum;
    },
  };
}

function awaitedOneByOne(name: string, make: () => Promise<string>): Contender {
  return {
    name,
    collect: () => {},
    keep: async (kept, count) => {
      for (let index = 0; index < count; index++) kept[index & (kept.length - 1)] = await make();
    },
    read: async (count) => {
      let sum = 0;
      for (let index = 0; index < count; index++) sum += codesOf(await make());
      return sum;
    },
  };
}

function looped(name: string, client: Client): Contender {
  return {
    name,
    collect: () => {},
    keep: async (kept, count) => {
      let index = 0;
      for await (const callNumber of client) {
        kept[index & (kept.length - 1)] = callNumber;
        if (++index >= count) break;
      }
    },
    read: async (count) => {
      let sum = 0;
      let index = 0;
      for await (const callNumber of client) {
        sum += codesOf(callNumber);
        if (++index >= count) break;
      }
      return sum;
    },
  };
}

function codesOf(text: string): number {
  let sum = 0;
  for (let place = 0; place < text.length; place++) sum += text.charCodeAt(place);
  return sum;
}
