/** In a mutation run of TypeScript: each module still loads. Some check at load what they rely on, such as the layout. */
import { env } from "node:process";
import { expect, test } from "vitest";

const FOLDERS = {
  protocol: import.meta.glob("../../packages/protocol/src/*.ts"),
  numbers: import.meta.glob("../../packages/client/src/run-numbers.ts"),
  client: import.meta.glob("../../packages/client/src/*.ts"),
  guard: import.meta.glob("../../packages/coordinator/src/guard/*.ts"),
  stores: import.meta.glob("../../packages/coordinator/src/stores/{memory,sqlite/store}.ts"),
};

test("every module loads", async () => {
  const modules = Object.values(FOLDERS[env.CALLNUMBER_MUTATE] ?? {});
  expect(modules).not.toEqual([]);
  for (const load of modules) await load();
});
