import fc from "fast-check";
import { expect, it } from "vitest";
import { unquoteFromLines } from "../src/mbox/quoting.js";
import { splitMbox } from "../src/sources/mbox.js";

/** A line that has every chance to be taken for something else. */
const line = fc.oneof(
  fc.constantFrom(
    "",
    "x",
    "From",
    "From ",
    "From a@b Mon Jan  5 10:00:00 2015",
    "From here",
    ">From a 10:00 2015",
    "Subject: y",
  ),
  fc.constantFrom(">>From a@b Mon Jan  5 10:00:00 2015\r", "\r", " ", "\t10:00:00 2015", "-- "),
  fc.uint8Array({ maxLength: 30 }).map((bytes) =>
    Buffer.from(bytes)
      .toString("latin1")
      .replace(/[\n\0]/g, "."),
  ),
);
const message = fc.array(line, { maxLength: 12 }).map((lines) => ["Subject: s", ...lines, ""].join("\n"));

/** As mboxrd is written: every line of `>`s and `From ` gets one more `>`. */
function written(messages: readonly string[]): Buffer {
  const quoted = messages.map((text) => text.replace(/^(>*From )/gm, ">$1"));
  return Buffer.from(quoted.map((text) => `From a@b Mon Jan  5 10:00:00 2015\n${text}\n`).join(""), "latin1");
}

async function* inChunks(bytes: Buffer, chunkBytes: number): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += chunkBytes) yield bytes.subarray(start, start + chunkBytes);
}

it("gives back every message that was written as mboxrd, whatever the size of the chunks", async () => {
  const property = fc.asyncProperty(
    fc.array(message, { minLength: 1, maxLength: 8 }),
    fc.integer({ min: 1, max: 200 }),
    async (messages, chunkBytes) => {
      const bytes = written(messages);
      const read: string[] = [];
      for await (const part of splitMbox(inChunks(bytes, chunkBytes))) {
        expect(part.kind).toBe("message");
        read.push(unquoteFromLines(bytes.subarray(part.contentOffset, part.contentEnd)).toString("latin1"));
      }
      expect(read).toEqual(messages);
    },
  );
  await fc.assert(property, { numRuns: 2000 });
});
