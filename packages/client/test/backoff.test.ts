import { describe, expect, test } from "vitest";
import { retryDelayMs } from "../src/backoff.js";

const delays = (attempt: number, retryAfterMs?: number) =>
  Array.from({ length: 1000 }, () => retryDelayMs(attempt, retryAfterMs));

describe("the delay before the next try", () => {
  test("is spread from nothing to a bound that doubles, up to ten seconds", () => {
    for (const [attempt, boundMs] of [
      [1, 100],
      [2, 200],
      [5, 1600],
      [8, 10_000],
      [1000, 10_000],
    ] as const) {
      const drawn = delays(attempt);
      expect(Math.max(...drawn)).toBeLessThanOrEqual(boundMs);
      // Full jitter: a thousand draws that all miss the outer tenths would be no chance.
      expect(Math.max(...drawn)).toBeGreaterThan(0.9 * boundMs);
      expect(Math.min(...drawn)).toBeLessThan(0.1 * boundMs);
    }
  });

  test("comes on top of what the coordinator asked for, but a minute at the most", () => {
    expect(Math.min(...delays(1, 2_000))).toBeGreaterThanOrEqual(2_000);
    expect(Math.max(...delays(1, 2_000))).toBeLessThanOrEqual(4_000);
    expect(Math.min(...delays(1, 2 ** 31))).toBeGreaterThanOrEqual(60_000);
    expect(Math.max(...delays(1, 2 ** 31))).toBeLessThanOrEqual(70_000);
  });

  test("is a whole number of milliseconds, never less than the coordinator asked for", () => {
    for (const delayMs of delays(1, 0.25)) expect(delayMs).toSatisfy((value) => Number.isInteger(value) && value >= 1);
  });

  test("spreads those who were told to wait over as long again, and over a second at the most: they were all told the same", () => {
    expect(Math.max(...delays(1, 4_000))).toBeLessThanOrEqual(5_000);
    const drawn = delays(1, 1_000);
    for (const fromMs of [1_000, 1_250, 1_500, 1_750]) {
      const inQuarter = drawn.filter((delayMs) => delayMs >= fromMs && delayMs < fromMs + 250).length;
      expect(inQuarter).toBeGreaterThan(150);
      expect(inQuarter).toBeLessThan(350);
    }
  });
});
