/** `callnumber serve` on an embedded store of which one namespace is damaged, and what an operator does then. */
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { callnumber, folderForTest, serve } from "../../../test/processes/command.js";

test("serve leases from the namespace that is whole, and from the other one after stop, recover and start", async () => {
  const path = join(await folderForTest(), "store.db");
  const store = `sqlite:${path}`;
  await callnumber(["init", "--store", store]);
  const made = await callnumber(["init", "--namespace", "lists", "--store", store, "--json"]);
  const { storeId } = JSON.parse(made.stdout) as { storeId: string };
  const database = new DatabaseSync(path);
  database.exec("UPDATE namespaces SET c = '7' WHERE name = 'lists'");
  database.close();

  // Asked for by name, and known: it is reported as the others are.
  const running = await serve(store, "--namespace", "lists");
  const { stderr } = running.output();
  expect(stderr).toMatch(/^namespaces: main$/m);
  expect(stderr).toMatch(
    /^namespace lists does not lease \(store_corrupt\): .*Stop this coordinator, repair .*start it again$/m,
  );
  const lists = ["--namespace", "lists"];
  expect((await callnumber(["next", "--coordinator", running.url])).code).toBe(0);
  const status = await callnumber(["status", ...lists, "--coordinator", running.url]);
  expect(status).toMatchObject({ code: 1, stderr: expect.stringContaining("store_corrupt") });
  const apply = ["recover", ...lists, "--store", store, "--store-id", storeId, "--apply"];
  const early = await callnumber(apply);
  expect(early).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Stop it first and start it again afterwards"),
  });
  await running.stop();
  const { stdout } = await callnumber(apply);
  expect(stdout).toContain("Start the coordinator");
  const after = await serve(store);
  expect(after.output().stderr).toMatch(/^namespaces: lists, main$|^namespaces: main, lists$/m);
});
