/** What a command was called with, for the commands that it prints: to be run again as they are, without a password. */
import { resolve } from "node:path";
import { commandUrlOf, parseStoreUrl } from "@callnumber/coordinator/operator";
import { type CommandContext, shellWord } from "@callnumber/protocol/operator";
import type { Command } from "commander";
import { running } from "./command-io.js";

/** For a command with `--store`, once that is known. */
export function fillPrintedCommands(command: Command): void {
  command.hook("preAction", (_, action) => {
    try {
      running().context = commandContextOf(action);
    } catch {
      // The command itself reports a URL that can't be read.
    }
  });
}

/** @throws TypeError for a store's URL that can't be read. */
export function commandContextOf(command: Command): CommandContext {
  const folder: unknown = command.getOptionValue("witnessFolder");
  const isNamed = typeof folder === "string" && command.getOptionValueSource("witnessFolder") !== "default";
  const storeFile: unknown = command.getOptionValueSource("store") === "file" && command.getOptionValue("storeFile");
  return {
    // A coordinator's file has a user that may not recover.
    storeOption:
      typeof storeFile === "string" && command.name() !== "serve"
        ? `--store-file ${shellWord(resolve(storeFile))}`
        : `--store ${shellWord(commandUrlOf(parseStoreUrl(command.getOptionValue("store"))))}`,
    witnessOption: isNamed ? `--witness-folder ${shellWord(resolve(folder))}` : "",
  };
}
