/** Minting waits where a scheme waits, keeps before it hands over, and loses none of what was minted before a refusal. */
import { describe, expect, test } from "vitest";
import { type MintedNumber, mintNumbers } from "../src/commands/mint.js";
import { type MintContext, type Minted, type Scheme, SchemeError } from "../src/index.js";

type Step = Minted | SchemeError;

/** A scheme that answers these steps, one after the other; the last one for ever. */
function played(steps: readonly Step[]): Scheme {
  let place = 0;
  const mint = (): Minted => {
    const step = steps[Math.min(place++, steps.length - 1)] as Step;
    if (step instanceof SchemeError) throw step;
    return step;
  };
  return { mint } as Partial<Scheme> as Scheme;
}

const number = (text: string): MintedNumber => ({ outcome: "minted", text, values: {} });

async function story(steps: readonly Step[], count: number, nowMs = Date.now) {
  const told: string[] = [];
  const minting = mintNumbers({
    scheme: played(steps),
    context: { clock: { nowMs } } as Partial<MintContext> as MintContext,
    count,
    keep: () => void told.push("keep"),
    handOver: async (numbers) =>
      void told.push(numbers.length > 3 ? `${numbers.length}` : numbers.map(({ text }) => text).join(" ")),
    onLongWait: (waitMs) => void told.push(`long wait of ${waitMs}`),
  });
  return { told, ended: await minting.catch((error: unknown) => error) };
}

describe("minting", () => {
  test("keeps what a number has changed before the number is out", async () => {
    expect((await story([number("a"), number("b")], 2)).told).toEqual(["keep", "a b"]);
  });

  test("hands over many in batches, each kept by one writing", async () => {
    expect((await story([number("a")], 2_500)).told).toEqual(["keep", "1000", "keep", "1000", "keep", "500"]);
  });

  test("hands over what it has before it waits, and waits as often as the scheme says", async () => {
    const wait: Minted = { outcome: "wait", untilMs: Date.now() };
    expect((await story([number("a"), wait, wait, number("b"), number("c")], 3)).told).toEqual([
      "keep",
      "a",
      "keep",
      "b c",
    ]);
  });

  test("tells of a long wait once, and asks again before its end: the clock may be set", async () => {
    const wait: Minted = { outcome: "wait", untilMs: 3_600_000 };
    expect((await story([wait, wait, number("a")], 1, () => 0)).told).toEqual(["long wait of 3600000", "keep", "a"]);
  });

  test("that is refused hands over what was minted before, and fails", async () => {
    const refusal = new SchemeError("clock_went_back", "the clock went back");
    const { told, ended } = await story([number("a"), number("b"), refusal], 3);
    expect(told).toEqual(["keep", "a b"]);
    expect(ended).toBe(refusal);
  });
});
