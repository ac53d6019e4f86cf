import { describe, expect, it } from "vitest";
import type { Summary } from "../src/importing/summary.js";
import { summaryText } from "../src/importing/summary-text.js";
import { printable } from "../src/report/printable.js";
import { progressView } from "../src/terminal.js";

const SUMMARY: Summary = {
  outcome: "complete",
  error: null,
  archive: "/a/archive.db",
  coordinator: "http://127.0.0.1:7300",
  namespace: "main",
  storeId: "store-a",
  messages: { stored: 1522, alreadyThere: 1, notStored: 0 },
  runs: { leased: 5, used: 4 },
  processes: 4,
  seconds: 2,
  callNumbersPerSecond: 761,
  archiveHolds: {
    messages: 1523,
    withoutMessageId: 3,
    repeatedMessageIds: { ids: 36, messages: 72 },
    repeatedContents: { contents: 35, messages: 70 },
  },
  sources: [{ kind: "mbox", path: "/a/empty.mbox", bytes: 0, messages: 0, notices: ["is empty"] }],
  problemCount: 0,
  problems: [],
};

describe("the text of strangers", () => {
  it.each([
    ["\u001b[2J\u001b[31mred\u0007", " [2J [31mred "],
    ["line\nbreak\r\u2028x", "line break x"],
    ["right\u202eto left", "right to left"],
    ["Grüße 書架 🎈", "Grüße 書架 🎈"],
  ])("is printed without control characters: %j", (text, printed) => {
    expect(printable(text)).toBe(printed);
  });

  it("is cut, but never in the middle of a character", () => {
    expect(printable("abcdef", 4)).toBe("abc…");
    expect(printable("ab🎈cdef", 4)).toBe("ab…");
  });
});

describe("the summary", () => {
  it("says what was stored, from which runs, and what stands more than once", () => {
    const text = summaryText(SUMMARY);
    for (const words of [
      "1,522 messages",
      "1 message",
      "4 used, 5 leased",
      "761 call numbers a second",
      "0 messages; is empty",
    ]) {
      expect(text).toContain(words);
    }
    for (const words of ["36 IDs in 72 messages", "35 contents in 70 messages"]) expect(text).toContain(words);
  });

  it("names each problem by source, number, byte and reason, and counts those it does not show", () => {
    const problem = { source: "/a/b.mbox", number: 7, byteOffset: 99, reason: "bad \u001b[2J", stored: false };
    const text = summaryText({ ...SUMMARY, problemCount: 30, problems: Array.from({ length: 30 }, () => problem) });
    expect(text).toContain("/a/b.mbox, message 7, byte 99: bad  [2J (NOT stored)");
    expect(text).toContain("and 10 more");
    expect(text).not.toContain("\u001b");
  });

  it("names the store as the coordinator did, and nothing of it acts on a terminal", () => {
    const text = summaryText({ ...SUMMARY, storeId: "s\u001b[2J\u202egpj\nImported into" });
    expect(text).toContain("store s [2J gpj Imported into, namespace main");
  });

  it("says that it was stopped, or that it failed", () => {
    expect(summaryText({ ...SUMMARY, outcome: "stopped" })).toMatch(/^Stopped before the end/);
    expect(summaryText({ ...SUMMARY, outcome: "failed" })).toMatch(/^Failed before the end/);
  });
});

describe("progress", () => {
  const half = { bytes: 50, bytesTotal: 100, messages: 1234, stored: 1234 };

  it("is a bar on a terminal, redrawn in its line and never wider than it", () => {
    const written: string[] = [];
    let nowMs = 0;
    const view = progressView({ isTTY: true, columns: 50, write: (text) => written.push(text) }, () => nowMs);
    nowMs = 10_000;
    view.show(half);
    expect(written.at(-1)).toBe(`\r\u001b[K${"[############------------]  50 %  1,234 messages  123/s".slice(0, 49)}`);
    view.note("process 1 waits");
    expect(written.at(-1)?.startsWith("\r\u001b[Kprocess 1 waits\n[#")).toBe(true);
    view.end();
    expect(written.at(-1)?.endsWith("\n")).toBe(true);
  });

  it("is a plain line every five seconds elsewhere", () => {
    const written: string[] = [];
    let nowMs = 0;
    const view = progressView({ write: (text) => written.push(text) }, () => nowMs);
    for (nowMs = 0; nowMs <= 12_000; nowMs += 100) {
      view.show({ ...half, bytes: (half.bytesTotal * nowMs) / 20_000 });
    }
    expect(written.length).toBe(2);
    expect(written[1]).toMatch(/^ {1,2}50 % {2}1,234 messages {2}123\/s {2}about 10 s left\n$/);
  });

  it("is complete for sources without a byte, and never more than complete", () => {
    const written: string[] = [];
    const view = progressView({ isTTY: true, write: (text) => written.push(text) }, () => 0);
    view.show({ bytes: 0, bytesTotal: 0, messages: 0, stored: 0 });
    view.show({ bytes: 150, bytesTotal: 100, messages: 1, stored: 1 });
    expect(written.every((line) => line.includes("100 %"))).toBe(true);
  });
});
