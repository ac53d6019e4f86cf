/** Schemes with a time before a node: what they generate and reject, and their clocks. */
import { describe, expect, test } from "vitest";
import { hashOfMacs } from "../src/generating.js";
import { millis411013, objectid, snowflake2015, twitterSnowflake } from "../src/schemes/snowflakes.js";
import { contextWith, draws, fieldsOf, generated, generatedStep, vectorsOf } from "./helpers.js";

test("Twitter's Snowflake rejects a node beyond ten bits, and a clock without a time", () => {
  expect(() => twitterSnowflake.generate(contextWith({ node: { given: 1024 } }))).toThrow(
    new RangeError("datacenter and worker must be a whole number from 0 to 1023, not 1024"),
  );
  expect(() => twitterSnowflake.generate(contextWith({ nowMs: Number.NaN }))).toThrow(RangeError);
});

describe("the Snowflake of 2015", () => {
  interface Trace {
    readonly name: string;
    readonly node: number;
    readonly clock?: readonly number[];
    readonly clockRuns?: readonly (readonly [ms: number, times: number])[];
    readonly out?: readonly ({ readonly id: string } | { readonly error: string })[];
    readonly results?: number;
    readonly last?: readonly { readonly id: string }[];
  }

  const { nodeFromMac, traces } = vectorsOf<{
    readonly nodeFromMac: readonly {
      readonly macs: readonly string[];
      readonly javaHashCode: number;
      readonly nodeId: number;
    }[];
    readonly traces: readonly Trace[];
  }>("snowflake_1_41_10_12_epoch2015");

  const EPOCH_MS = 1_420_070_400_000;
  test("the Snowflake of 2015 takes its node from the MAC addresses as the 20 vectors do", () => {
    expect(nodeFromMac).toHaveLength(20);
    for (const { macs, javaHashCode, nodeId } of nodeFromMac) {
      const text = generated(snowflake2015, contextWith({ node: { macs, given: 7 } }));
      expect(fieldsOf(snowflake2015, text)).toMatchObject({ node: nodeId });
      expect(hashOfMacs(macs)).toBe(BigInt.asUintN(32, BigInt(javaHashCode)));
    }
  });

  test("the Snowflake of 2015 takes the given node without a MAC address, and rejects a malformed address", () => {
    expect(fieldsOf(snowflake2015, generated(snowflake2015, contextWith({ node: { given: 786 } })))).toMatchObject({
      node: 786,
    });
    expect(() => snowflake2015.generate(contextWith({ node: { macs: ["deadbeef0001"] } }))).toThrow(RangeError);
  });

  test.each(traces.map((trace) => [trace.name, trace] as const))(
    "the Snowflake of 2015 generates the trace: %s",
    (_, trace) => {
      const readings = trace.clock ?? (trace.clockRuns ?? []).flatMap(([ms, times]) => Array<number>(times).fill(ms));
      const context = contextWith({ node: { given: trace.node } });
      const results: ({ id: string } | { error: string })[] = [];
      for (const ms of readings) {
        context.clock.at = ms;
        try {
          const step = snowflake2015.generate(context);
          if (step.outcome === "generated") results.push({ id: step.text });
          else expect(step.untilMs).toBe(ms + 1);
        } catch (error) {
          expect(error).toMatchObject({ name: "SchemeError", code: "clock_moved_backward" });
          results.push({ error: "clock went backwards" });
        }
      }
      if (trace.out !== undefined) expect(results).toEqual(trace.out);
      if (trace.results !== undefined) expect(results).toHaveLength(trace.results);
      if (trace.last !== undefined) expect(results.slice(-trace.last.length)).toEqual(trace.last);
      expect(trace.out ?? trace.last).toBeDefined();
    },
  );

  test("the Snowflake of 2015 reads the clock once a step", () => {
    let read = 0;
    const clock = { nowMs: () => EPOCH_MS + ++read };
    snowflake2015.generate(contextWith({ clock } as never));
    expect(read).toBe(1);
  });
});

interface Drawn {
  readonly unixMs: string | number;
  readonly generator: number;
  readonly random: number;
}

test("the 41+10+13 scheme rejects a generator beyond ten bits, which changed the time in the published code", () => {
  const { unmasked_seed_code: unmasked } = vectorsOf<{
    readonly unmasked_seed_code: readonly { readonly id: string; readonly decodesAs: Drawn }[];
  }>("nonsequential_41_10_13");
  expect(unmasked).toHaveLength(1);
  for (const { id, decodesAs, ...given } of unmasked as readonly (Drawn & (typeof unmasked)[number])[]) {
    const fieldsIn = ({ unixMs, generator, random }: Drawn) => ({ time: Number(unixMs), generator, random });
    expect(() => millis411013.format(fieldsIn(given))).toThrow(
      "generator must be a whole number from 0 to 1023, not 1024",
    );
    expect(fieldsOf(millis411013, id)).toEqual(fieldsIn(decodesAs));
  }
});

test("the 41+10+13 scheme rejects a draw out of its bounds", () => {
  for (const wrong of [8_191, -1, 0.5, Number.NaN]) {
    expect(() => millis411013.generate(contextWith({ random: { below: () => wrong } }))).toThrow(RangeError);
  }
});

test("the ObjectId scheme wraps its counter around across seconds, also when the clock goes back", () => {
  const context = contextWith({ nowMs: 5_000, random: draws([2 ** 24 - 2]) });
  const counters = [5_000, 5_999, 6_000, 3_000, 6_000].map((at) => {
    context.clock.at = at;
    return generatedStep(objectid.generate(context)).values.counter;
  });
  expect(counters).toEqual([2 ** 24 - 2, 2 ** 24 - 1, 0, 1, 2]);
});

test("the ObjectId scheme waits when a second has no counter left", () => {
  const context = contextWith({ nowMs: 5_400 });
  generated(objectid, context);
  context.memory.set("objectid/made in unit", 2n ** 24n - 1n);
  generated(objectid, context);
  expect(objectid.generate(context)).toEqual({ outcome: "wait", untilMs: 6_000 });
});
