/** What a hungry importer loses by waiting for runs, when the coordinator is slow. Measured by a plain process, waiting/main.ts. */
import { inject, test } from "vitest";
import { plainProcess } from "./plain-process.js";

test("time lost waiting for runs", async () => {
  await plainProcess("waiting", String(inject("seed")));
});
