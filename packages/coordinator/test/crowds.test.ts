/** When a crowd stays: by a clock that the test sets. And what is left of the places for it then. */
import { expect, onTestFinished, test, vi } from "vitest";
import { Crowds } from "../src/limits/crowds.js";
import { OVERLOADED_MESSAGE, UnderWay } from "../src/limits/under-way.js";

function crowdsByHand() {
  const clock = { ms: 1_000 };
  return { clock, crowds: new Crowds(() => clock.ms) };
}

test("who is turned away for longer than a moment is a crowd that stays; a crowd that begins together is none", () => {
  const { clock, crowds } = crowdsByHand();
  for (let count = 0; count < 1_000; count++) crowds.note("a");
  clock.ms += 100;
  crowds.note("a");
  clock.ms += 1;
  expect(crowds.stays("a")).toBe(false);
  crowds.note("a");
  expect(crowds.stays("a")).toBe(true);
  expect(crowds.stays("b")).toBe(false);
});

test("who was turned away in one moment only is no crowd that stays, as long as that is remembered", () => {
  const { clock, crowds } = crowdsByHand();
  for (let count = 0; count < 1_000; count++) crowds.note("a");
  for (clock.ms += 100; clock.ms <= 2_000; clock.ms += 100) expect(crowds.stays("a")).toBe(false);
});

test("a crowd is gone when nobody of it was turned away for a second, and then begins anew", () => {
  const { clock, crowds } = crowdsByHand();
  crowds.note("a");
  clock.ms += 500;
  crowds.note("a");
  clock.ms += 1_000;
  expect(crowds.stays("a")).toBe(true);
  clock.ms += 1;
  expect(crowds.stays("a")).toBe(false);
  crowds.note("a");
  clock.ms += 100;
  expect(crowds.stays("a")).toBe(false);
});

test("crowds that are gone are forgotten, however many there were", () => {
  const { clock, crowds } = crowdsByHand();
  for (let asker = 0; asker < 1_000; asker++) crowds.note(`gone ${asker}`);
  clock.ms += 1_001;
  for (let asker = 0; asker < 500; asker++) crowds.note(`here ${asker}`);
  expect(crowds.rememberedCount).toBe(500);
});

test("of those who are turned away again and again none is forgotten while others are, and few are looked at for it", () => {
  const { clock, crowds } = crowdsByHand();
  for (let asker = 0; asker < 2_000; asker++) crowds.note(`here ${asker}`);
  const walks = vi.spyOn(Map.prototype, Symbol.iterator).mockImplementation(counted as never);
  onTestFinished(() => walks.mockRestore());
  let lookedAtCount = 0;
  function* counted(this: Map<unknown, unknown>) {
    for (const entry of this.entries()) {
      lookedAtCount++;
      yield entry;
    }
  }
  clock.ms += 600;
  for (let asker = 0; asker < 1_500; asker++) crowds.note(`here ${asker}`);
  expect(lookedAtCount).toBeLessThanOrEqual(1_500);
  clock.ms += 600;
  crowds.note("here 0");
  expect(crowds.rememberedCount).toBe(1_500);
});

test("a crowd that stays begins an eighth of what it had in a turn, others beside it have all that is free, and afterwards it has all again", () => {
  const { clock, crowds } = crowdsByHand();
  const underWay = new UnderWay(128, OVERLOADED_MESSAGE, crowds);
  const takeAll = (asker: string) => {
    const ends: (() => void)[] = [];
    while (underWay.hasPlaceFor(asker)) ends.push(underWay.begin(asker));
    return ends;
  };
  const crowd = takeAll("crowd");
  expect(crowd.length).toBe(64);
  clock.ms += 101;
  expect(underWay.hasPlaceFor("crowd")).toBe(false);
  for (const end of crowd.slice(0, 62)) end();
  return new Promise<void>((resolve) => setImmediate(resolve)).then(async () => {
    expect(takeAll("crowd").length).toBe(8);
    crowds.note("second");
    clock.ms += 101;
    crowds.note("second");
    // The eighth is taken by half, so one who shares it gets a half of the rest.
    expect(takeAll("second").length).toBe(4);
    expect(takeAll("other").length).toBe(57);
    clock.ms += 1_001;
    expect(underWay.hasPlaceFor("crowd")).toBe(true);
  });
});

test("a crowd whose leases wait for the store has as many under way as it had, begun in more turns", async () => {
  const { clock, crowds } = crowdsByHand();
  const underWay = new UnderWay(128, OVERLOADED_MESSAGE, crowds);
  crowds.note("crowd");
  clock.ms += 101;
  crowds.note("crowd");
  const begun: number[] = [];
  for (let turn = 0; turn < 9; turn++) {
    let count = 0;
    for (; underWay.hasPlaceFor("crowd"); count++) underWay.begin("crowd");
    begun.push(count);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  expect(begun).toEqual([8, 8, 8, 8, 8, 8, 8, 8, 0]);
});

test("one place is there for a crowd, however few there are", () => {
  const { clock, crowds } = crowdsByHand();
  const underWay = new UnderWay(2, OVERLOADED_MESSAGE, crowds);
  crowds.note("crowd");
  clock.ms += 101;
  crowds.note("crowd");
  expect(underWay.hasPlaceFor("crowd")).toBe(true);
});
