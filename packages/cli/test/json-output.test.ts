/** docs/reference/json-output.md names the fields that each command prints with `--json`: this runs each, and compares. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callnumber, folderForTest, serve } from "../../../test/processes/command.js";
import { embeddedStore, imported, lease } from "./commands-for-test.js";

const PAGE = new URL("../../../docs/reference/json-output.md", import.meta.url);

/** For each command of the page: whether it prints one object, an array or a line each, and the names of the fields. */
function shapesOfPage(): Record<string, string> {
  const rows = readFileSync(PAGE, "utf8").matchAll(/^\| `([^|]+)` +\| ([^|]+?) +\| ([^|]+?) +\|$/gm);
  return Object.fromEntries(
    [...rows].map(([, command = "", form, fields = ""]) => [
      command,
      `${form}: ${[...fields.matchAll(/`(\w+)`/g)].map(([, name]) => name).join(" ")}`,
    ]),
  );
}

function shapeOf(stdout: string): string {
  const lines = stdout.trim().split("\n");
  const isLines = lines.length > 1 && lines.every((line) => /^\{.*\}$/.test(line));
  const value: unknown = isLines ? lines.map((line) => JSON.parse(line) as object) : JSON.parse(stdout);
  const form = isLines ? "lines" : Array.isArray(value) ? "array" : /^\{.*\}\n$/.test(stdout) ? "lines" : "object";
  return `${form}: ${Object.keys(Array.isArray(value) ? (value[0] as object) : (value as object)).join(" ")}`;
}

test("every command prints the JSON that the page describes", async () => {
  const folder = await folderForTest();
  const [store, later] = [await embeddedStore(), await embeddedStore()];
  const shapes: Record<string, string> = {};
  const run = async (command: string, ...words: readonly string[]) => {
    const { code, stdout, stderr } = await callnumber([...command.split(" "), ...words, "--json"]);
    expect(stdout, `${command}: ${code}, ${stderr}`).not.toBe("");
    shapes[command] = shapeOf(stdout);
    return stdout;
  };

  await run("init", "--store", store);
  const running = await serve(store);
  const to = ["--coordinator", running.url];
  await lease(running.url, { runCount: 2 });
  await run("next", "--count", "2", ...to);
  await run("inspect", ...(await imported(running.url, 2)), ...to);
  await run("runs", ...to);
  await run("runs 1", ...to);
  await run("export", ...to);
  await run("status", ...to);
  await run("status --all-namespaces", ...to);
  await run("status --check", ...to);
  await run("doctor", ...to);
  await running.stop();

  await run("decode", "2VznWE2i", "03KOE60u");
  await run("encode", "0", "99", "345");
  await run("explain", "store_locked");
  await run("complete", "zsh");
  // What follows -- belongs to the client.
  const client = [process.execPath, "-e", 'console.log("2VznWE2i\\nok"); setInterval(() => {}, 1e6)'];
  shapes["conformance"] = shapeOf(
    (await callnumber(["conformance", "--json", "--rules", "token", "--", ...client])).stdout,
  );
  await run("retention", "--store", store, "--days", "30");
  await run("backup", "--store", store, "--to", join(folder, "backup.db"));
  await run("recover", "--store", store);
  await run("recover --apply", "--store", store);
  await run("move", "--store", store, "--to", later);
  await run("move --apply", "--store", store, "--to", later);
  const another = await embeddedStore();
  await run("init", "--store", another, "--first-run", "1073741000");
  await run("advance-version", "--store", another, "--to", "1", "--force-early", "--apply");

  const file = ["--tokens-file", join(folder, "tokens.json")];
  const { id } = JSON.parse(await run("token create", "--role", "read", "--all-namespaces", ...file)) as { id: string };
  await run("token list", ...file);
  await run("token revoke", id, ...file);

  await run("schemes");
  await run("help");
  await run("version");
  await run("schemes list");
  await run("schemes parse", "no number");
  await run("schemes generate", "--scheme", "uuid");
  await run("schemes odds");
  await run("schemes odds --space 9");
  await run("schemes plan", "--messages", "1e9");
  await run("schemes simulate", "--nodes", "2", "--numbers", "100");
  expect(shapes).toEqual(shapesOfPage());
});
