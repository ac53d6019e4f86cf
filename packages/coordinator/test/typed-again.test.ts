/** A command line that is shown to be typed again says what was typed, as a shell takes it, and no password. */
import { Command, Option } from "commander";
import { expect, test } from "vitest";
import { typedAgain } from "../src/cli/typed-again.js";

function typed(...words: readonly string[]): Command {
  return new Command("recover")
    .option("--store <url>")
    .option("--namespace <name>", "", "main")
    .option("--json [yes|no]")
    .option("--apply")
    .addOption(new Option("--scan <file>").argParser((one: string, all: string[] = []) => [...all, one]))
    .parse(words, { from: "user" });
}

test("options are said again as typed, quoted for a shell; defaults are not", () => {
  const command = typed("--scan", "a log's.gz", "--scan", "log:-", "--store", "redis://h?prefix=x:", "--json");
  expect(typedAgain(command, {}, ["--apply"])).toBe(
    "callnumber recover --store 'redis://h?prefix=x:' --json --scan 'a log'\\''s.gz' --scan log:- --apply",
  );
});

test("what is added is not said twice, and what must not be shown is replaced", () => {
  const command = typed("--apply", "--store", "redis://:secret@h");
  expect(typedAgain(command, { store: "redis://h" }, ["--apply"])).toBe("callnumber recover --store redis://h --apply");
});
