import { spawnSync } from "node:child_process";
import { test } from "vitest";

test("waits in a call of the system", () => {
  spawnSync("sleep", ["20"]);
});
