/** `--store-file`: the store's URL out of a file, for whoever may not write its password on a command line or into an environment. */
import { env } from "node:process";
import type { Command } from "commander";
import { z } from "zod";
import { readPrivateFile } from "../private-file.js";
import { areSamePlace, hasNoLogin, parseStoreUrl } from "../stores/store-url.js";
import { checkedOption } from "./options.js";

/** For a command with `--store`: the file stands in for it before the command begins. */
export function takeStoreFromFile(command: Command): void {
  const description = "a file that holds the URL of --store; others may not read it";
  command.addOption(checkedOption("--store-file <path>", description, z.string().min(1)));
  command.hook("preAction", (_, action) => {
    const path: unknown = action.getOptionValue("storeFile");
    if (action.getOptionValueSource("store") === "cli" && action.getOptionValueSource("storeFile") !== "cli") {
      action.setOptionValueWithSource("store", withLogin(action.getOptionValue("store"), path), "cli");
      return;
    }
    if (typeof path !== "string") return;
    const [fileSource, urlSource] = [action.getOptionValueSource("storeFile"), action.getOptionValueSource("store")];
    if (fileSource === urlSource) {
      throw new TypeError("--store and --store-file both say where the store is: give one of them");
    }
    action.setOptionValueWithSource("store", storeUrlIn(path), fileSource === "cli" ? "file" : fileSource);
  });
}

/**
 * A URL that was typed without user and password, as messages print it: with those of the environment, where that names the same place.
 * Else as it was typed.
 */
function withLogin(typed: string, path: unknown): string {
  try {
    const given = env["CALLNUMBER_STORE"] ?? (typeof path === "string" ? storeUrlIn(path) : typed);
    const [one, other] = [parseStoreUrl(typed), parseStoreUrl(given)];
    return hasNoLogin(one) && areSamePlace(one, other) ? given : typed;
  } catch {
    // The command itself reports a URL that it can't read; the environment's is not asked for.
    return typed;
  }
}

/** @throws TypeError for a file that can't be read, that others may read, or that holds anything but one line. */
function storeUrlIn(path: string): string {
  const text = readPrivateFile(path, "the store file").trim();
  if (text === "" || /\s/.test(text)) throw new TypeError(`the store file ${path} must hold one line, the store's URL`);
  return text;
}
