/** `--store-file`: the store's URL out of a file, for whoever may not write its password on a command line or into an environment. */
import type { Command } from "commander";
import { z } from "zod";
import { readPrivateFile } from "../private-file.js";
import { checkedOption } from "./options.js";

/** For a command with `--store`: the file stands in for it before the command begins. */
export function takeStoreFromFile(command: Command): void {
  const description = "a file that holds the URL of --store; others may not read it";
  command.addOption(checkedOption("--store-file <path>", description, z.string().min(1)));
  command.hook("preAction", (_, action) => {
    const path: unknown = action.getOptionValue("storeFile");
    if (typeof path !== "string") return;
    const [fileSource, urlSource] = [action.getOptionValueSource("storeFile"), action.getOptionValueSource("store")];
    if (fileSource === urlSource) {
      throw new TypeError("--store and --store-file both say where the store is: give one of them");
    }
    // What is typed stands above what the environment says.
    if (urlSource === "cli") return;
    action.setOptionValueWithSource("store", storeUrlIn(path), fileSource === "cli" ? "file" : fileSource);
  });
}

/** @throws TypeError for a file that can't be read, that others may read, or that holds anything but one line. */
function storeUrlIn(path: string): string {
  const text = readPrivateFile(path, "the store file").trim();
  if (text === "" || /\s/.test(text)) throw new TypeError(`the store file ${path} must hold one line, the store's URL`);
  return text;
}
