/** `--store-file`, and `--to-file` of `move`: a store's URL out of a file, which keeps its password off the command line. */
import type { Command, Option } from "commander";
import { z } from "zod";
import { readPrivateFile } from "../platform/private-file.js";
import { areSamePlace, hasNoLogin, parseStoreUrl } from "../stores/store-url.js";
import { commandIo } from "./command-io.js";
import { checkedOption, setting } from "./options.js";

/** For a command with `--store`, which can also be a setting. */
export function takeStoreFromFile(command: Command): void {
  command.addOption(setting(fileOption("store")));
  readBefore(command, "store");
}

/** For `move`. */
export function takeTargetFromFile(command: Command): void {
  command.addOption(fileOption("to"));
  readBefore(command, "to");
}

function fileOption(name: string): Option {
  const description = `a file that holds the URL of --${name}; others may not read it`;
  return checkedOption(`--${name}-file <path>`, description, z.string().min(1, "must name a file"));
}

/** The URL in the file replaces the option before the command begins. */
function readBefore(command: Command, name: string): void {
  command.hook("preAction", (_, action) => {
    const path: unknown = action.getOptionValue(`${name}File`);
    if (action.getOptionValueSource(name) === "cli" && action.getOptionValueSource(`${name}File`) !== "cli") {
      if (name === "store") action.setOptionValueWithSource(name, withLogin(action.getOptionValue(name), path), "cli");
      return;
    }
    if (typeof path !== "string") return;
    const [fileSource, urlSource] = [action.getOptionValueSource(`${name}File`), action.getOptionValueSource(name)];
    if (fileSource === urlSource) {
      throw new TypeError(`--${name} and --${name}-file both name the store: give one of them`);
    }
    action.setOptionValueWithSource(name, storeUrlIn(path), fileSource === "cli" ? "file" : fileSource);
  });
}

/**
 * A URL that was typed without user and password, as messages print it: with those of the environment, where that names the same place.
 * Else as it was typed.
 */
function withLogin(typed: string, path: unknown): string {
  try {
    const given = commandIo().env["CALLNUMBER_STORE"] ?? (typeof path === "string" ? storeUrlIn(path) : typed);
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
