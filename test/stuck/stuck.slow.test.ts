/** A test file that never ends ends, the run fails, and says where it stood. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const FOLDER = fileURLToPath(new URL("./", import.meta.url));

test.each([
  [
    "goes round for ever",
    "loops",
    /loops\.fixture\.ts made no turn for 2 s and is ended: it stands in\s+at roundAndRound \(/,
  ],
  [
    "waits in a call of the system",
    "waits",
    /waits\.fixture\.ts made no turn for 2 s and is ended: it waits in a call/,
  ],
])("one that %s", async (_, name, told) => {
  const running = promisify(execFile)("npx", ["vitest", "run", "--config", `${FOLDER}vitest.config.ts`, name], {
    cwd: FOLDER,
    env: { ...process.env, NO_COLOR: "1" },
  });
  await expect(running).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(told) });
});
