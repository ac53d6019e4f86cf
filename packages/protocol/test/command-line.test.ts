/** The commands that messages print: complete, and quoted for a shell. */
import { expect, test } from "vitest";
import { commandLine, filledCommands } from "../src/api.js";

test("commandLine writes the namespace and the options, quoted, and leaves out what is undefined or false", () => {
  const options = { "min-run": 7, "store-id": undefined, apply: true, "confirm-clock": false, numbers: "it's" };
  expect(commandLine("recover", "lists", options)).toBe(
    "callnumber recover --store STORE_URL --namespace lists --min-run 7 --apply --numbers 'it'\\''s'",
  );
  expect(commandLine("status", "lists")).toBe("callnumber status --namespace lists");
});

test("filledCommands adds the store and checkpoint options where a command takes them, and changes nothing else", () => {
  const context = { storeOption: "--store redis://h:1/0", checkpointOption: "--checkpoint-dir /w" };
  const text = `STORE_URL: \`${commandLine("init", "lists")}\` or \`${commandLine("doctor", undefined)}\``;
  expect(filledCommands(text, context)).toBe(
    "STORE_URL: `callnumber init --store redis://h:1/0 --checkpoint-dir /w --namespace lists` or `callnumber doctor --store redis://h:1/0 --checkpoint-dir /w`",
  );
  expect(filledCommands(commandLine("init", "lists"), { ...context, checkpointOption: "" })).toBe(
    "callnumber init --store redis://h:1/0 --namespace lists",
  );
});

test("filledCommands adds the checkpoint option to a recovery of a store that the message names", () => {
  const context = { storeOption: "--store redis://h:1/0", checkpointOption: "--checkpoint-dir /w" };
  for (const [store, shown] of [
    ["redis://a:1/0", "redis://a:1/0"],
    ["sqlite:/my store/it's.db", "'sqlite:/my store/it'\\''s.db'"],
  ] as const) {
    const text = `run \`${commandLine("recover", "lists", { store, "min-run": 7 })}\``;
    // Only one process can have an embedded store open.
    const first = store.startsWith("sqlite:") ? " (stop the coordinator first)" : "";
    expect(filledCommands(text, context)).toBe(
      `run \`callnumber recover --store ${shown} --checkpoint-dir /w --namespace lists --min-run 7\`${first}`,
    );
  }
});

test("filledCommands leaves a command alone that another process has filled in, such as the coordinator for a doctor", () => {
  const context = { storeOption: "--store redis://h:1/0", checkpointOption: "--checkpoint-dir /own" };
  for (const storeOption of ["--store redis://h:1/0", "--store 'sqlite:/my store.db'"]) {
    const text = filledCommands(`\`${commandLine("recover", "lists")}\``, { ...context, storeOption });
    expect(filledCommands(text, { ...context, checkpointOption: "--checkpoint-dir /other" })).toBe(text);
  }
});

test("filledCommands fills in the store that a move goes to", () => {
  const text = commandLine("move", "lists", { store: "redis://a:1/0", to: "STORE_URL", apply: true });
  const filled = (storeOption: string, checkpointOption = "") =>
    filledCommands(text, { storeOption, checkpointOption });
  expect(filled("--store redis://b:1/0", "--checkpoint-dir /w")).toBe(
    "callnumber move --store redis://a:1/0 --namespace lists --to redis://b:1/0 --checkpoint-dir /w --apply",
  );
  expect(filled("--store-file /f")).toBe(
    "callnumber move --store redis://a:1/0 --namespace lists --to-file /f --apply",
  );
});
