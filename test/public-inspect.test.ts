/** The page for missing messages, as docs/operations.md gives it to archives: copied out of the document, and run. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { callnumber, REPOSITORY, serve } from "./processes/command.js";

type WhyMissing = (callNumber: string) => Promise<string>;

function whyMissingAt(coordinator: string): WhyMissing {
  const document = readFileSync(join(REPOSITORY, "docs", "operations.md"), "utf8");
  const [, example = ""] = /```js\n(const COORDINATOR.*?)```/s.exec(document) ?? [];
  expect(example).toContain("http://127.0.0.1:7300");
  return new Function(`${example.replace("http://127.0.0.1:7300", coordinator)}; return whyMissing;`)() as WhyMissing;
}

test("an archive's page denies a message only when there never was one, and is shown without a coordinator, too", async () => {
  const { url, stop } = await serve("memory:", "--public-inspect");
  const [made = ""] = (await callnumber(["next", "--coordinator", url])).stdout.trim().split("\n");
  const whyMissing = whyMissingAt(url);
  expect(await whyMissing(made)).toMatch(/may have been removed/);
  expect(await whyMissing(encodeCallNumber({ version: 0, run: 1, sequence: 1 }))).toMatch(/There never was/);
  for (const never of ["2VznWE2i", "nonsense!", "a/b?c#d"]) expect(await whyMissing(never)).toMatch(/There never was/);
  await stop();
  expect(await whyMissing("2VznWE2i")).toMatch(/may have been removed/);
});
