/** Figures, times and events as people read them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { OperatorEvent } from "@callnumber/protocol/operator";
import { describe, expect, test } from "vitest";
import { ago, asSentence, dateAndTime, duration, farDate, perCent, readable, roughly, span } from "../src/format.js";
import { happenings, isOfGuard, sentenceOf } from "../src/format-event.js";
import { hueOf } from "../src/namespace-colour.js";

const NOW_MS = Date.UTC(2026, 10, 21);
const YEAR_MS = 365.25 * 86_400_000;

function event(name: string, fields: Record<string, unknown>, more: Partial<OperatorEvent> = {}): OperatorEvent {
  return { id: 1, atMs: NOW_MS, level: "info", event: name, namespace: "main", code: null, fields, ...more };
}

describe("words", () => {
  test("never make a share look like nothing or like all", () => {
    expect(perCent(0)).toBe("0 %");
    expect(perCent(1e-8)).toBe("below 0.1 %");
    expect(perCent(0.9999)).toBe("99.9 %");
    expect(perCent(1)).toBe("100 %");
  });

  test("tell an instant of the coordinator's by the clock of whoever reads, as every other time on the page", () => {
    expect(asSentence("leased at 2026-11-21T21:30:59.542Z, by x")).toBe(
      `Leased at ${dateAndTime(Date.UTC(2026, 10, 21, 21, 30, 59))}, by x`,
    );
  });

  test("spell out what is not seen or turns the order of others, and leave every other script as it is", () => {
    expect(readable("a\u202eb\u2066\u001b[31m\u0000\u00ad\ud800")).toBe(
      "a\\u{202e}b\\u{2066}\\u{1b}[31m\\u{0}\\u{ad}\\u{d800}",
    );
    for (const text of ["two\nlines", "Bücher", "ספרים", "图书馆", "<b>"]) expect(readable(text)).toBe(text);
  });

  test("round great figures down, since what is left is never more than that", () => {
    expect(roughly(999_999)).toBe("999,999");
    expect(roughly(17_592_186_028_032)).toBe("17.5 million million");
  });

  test("say durations in one unit", () => {
    expect([0, 1_000, 59_999, 3_600_000, 90_000_000].map(duration)).toEqual([
      "a moment",
      "1 second",
      "59 seconds",
      "1 hour",
      "1 day",
    ]);
    expect([3_600_000, 604_800_000].map(span)).toEqual(["hour", "7 days"]);
    expect(ago(NOW_MS - 5_000, NOW_MS)).toBe("5 seconds ago");
  });

  test("say when the runs end as exactly as it matters", () => {
    expect(farDate(NOW_MS + 9 * 86_400_000, NOW_MS)).toMatch(/^on 2026-\d\d-\d\d$/);
    expect(farDate(NOW_MS + 60 * YEAR_MS, NOW_MS)).toBe("in the year 2086");
    expect(farDate(NOW_MS + 123_456 * YEAR_MS, NOW_MS)).toBe("in more than 100,000 years");
    expect(farDate(null, NOW_MS)).toBe("not in any calendar");
  });
});

describe("events in words", () => {
  test("tell a jump with what it cost", () => {
    expect(sentenceOf(event("jump", { before: 3, mark: 65_733, reason: "store_epoch_changed" }))).toBe(
      "jumped from run 3 to run 65,733, because of store_epoch_changed; the runs between are never leased",
    );
  });

  test("have a sentence for every event that docs/monitoring.md has", () => {
    const text = readFileSync(join(import.meta.dirname, "..", "..", "..", "docs", "monitoring.md"), "utf8");
    const table = text.slice(text.indexOf("| event "));
    const rows = [...table.matchAll(/^\| `([a-z_]+)` +\| ([a-z]+) /gm)];
    const told = rows.filter(([, , level]) => level !== "debug").map(([, name]) => name as string);
    expect(told.length).toBeGreaterThan(20);
    const silent = told.filter((name) => sentenceOf(event(name, {})) === name.replaceAll("_", " "));
    expect(silent).toEqual([]);
  });

  test("tell what this page has never heard of by its name and reason", () => {
    expect(sentenceOf(event("segment_archived", { reason: "by age" }))).toBe("segment archived: by age");
    expect(sentenceOf(event("constructor", {}))).toBe("constructor");
  });

  test("say of what came again within the second what it was, and whether it is of the guard", () => {
    const again = event("repeated", { of: "clocks_disagree", eventCount: 1_596 });
    expect(sentenceOf(again)).toBe("1,596 more in the same second: clocks disagree");
    expect(isOfGuard(again)).toBe(true);
    expect(isOfGuard(event("repeated", { of: "lease", eventCount: 3 }))).toBe(false);
  });

  test("leave out refused questions of pages and terminals, and count what is told again and again", () => {
    const refused = (path: string) => event("refusal", { path, reason: "in doubt" }, { code: "store_silent" });
    expect(isOfGuard(refused("/v1/namespaces/main/status"))).toBe(false);
    expect(isOfGuard(refused("/v1/namespaces/main/leases"))).toBe(true);
    expect(happenings([1, 2, 3].map(() => refused("/v1/namespaces/main/leases")))).toMatchObject([{ count: 3 }]);
  });
});

describe("a namespace's colour", () => {
  test("is the same everywhere and none of an alarm's", () => {
    for (const name of ["main", "lists", "archive", "a", "zz-9"]) {
      expect(hueOf(name)).toBe(hueOf(name));
      expect(hueOf(name)).toBeGreaterThanOrEqual(130);
      expect(hueOf(name)).toBeLessThan(345);
    }
    expect(new Set(["main", "lists", "list", "archive", "archives"].map(hueOf)).size).toBe(5);
  });
});
