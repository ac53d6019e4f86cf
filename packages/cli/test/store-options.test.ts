/** A command line that is printed to be run again has the options that were typed, quoted for a shell, and no password. */
import { Command } from "commander";
import { expect, test } from "vitest";
import { commandAgain, ignoreFindingsOption } from "../src/store-options.js";

function typed(...words: readonly string[]): Command {
  return new Command("recover")
    .option("--store <url>")
    .option("--namespace <name>", "", "main")
    .option("--min-run <n>", "", "7")
    .option("--confirm-clock")
    .option("--apply")
    .option("--numbers <file>")
    .addOption(ignoreFindingsOption())
    .parse(words, { from: "user" });
}

test("a command is printed again with the options that were typed, quoted for a shell", () => {
  const command = typed("--numbers", "the archive's.txt", "--namespace", "lists", "--confirm-clock");
  expect(commandAgain(command, "recover", { apply: true })).toBe(
    "callnumber recover --store STORE_URL --namespace lists --confirm-clock --numbers 'the archive'\\''s.txt' --apply",
  );
});

test("a command is printed again with a list as it was typed", () => {
  expect(commandAgain(typed("--ignore-findings", "superuser,majority"), "recover", {})).toBe(
    "callnumber recover --store STORE_URL --namespace main --ignore-findings superuser,majority",
  );
});

test("a command is printed again with its namespace, without a repeated option and without the typed password", () => {
  const command = typed("--apply", "--store", "redis://:secret@h");
  expect(commandAgain(command, "recover", { apply: true })).toBe(
    "callnumber recover --store STORE_URL --namespace main --apply",
  );
});
