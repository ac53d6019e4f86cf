/**
 * The token that a command bears when it asks a coordinator: from a file, or from the environment. Never from the command line, which
 * every user of the machine can read.
 */
import type { Option } from "commander";
import { z } from "zod";
import { readPrivateFile } from "../platform/private-file.js";
import { AskError } from "./ask-error.js";
import { commandIo } from "./command-io.js";
import { checkedOption, setting } from "./options.js";

/** What RFC 6750 lets a token have. */
const BEARER_PATTERN = /^[\w.~+/-]+=*$/;

export function tokenFileOption(): Option {
  const description =
    "file with the token that the coordinator asks for, which others may not read; read for each question; without it CALLNUMBER_TOKEN in the environment is taken";
  return setting(checkedOption("--token-file <file>", description, z.string().min(1, "must name a file")));
}

/**
 * The token, as it is now: a file is read each time, so that a token can be exchanged under a command that goes on. Undefined where
 * there is neither a file nor a token in the environment.
 * @throws AskError `token_unusable`, without what was found: it is no token, can't be read, or others may read it.
 */
export function bearerToken(file: string | undefined): string | undefined {
  if (file !== undefined) return checkedToken(contentOf(file).trim(), `the token file ${file}`);
  const { CALLNUMBER_TOKEN: token } = commandIo().env;
  return token === undefined ? undefined : checkedToken(token, "CALLNUMBER_TOKEN");
}

function checkedToken(token: string, where: string): string {
  if (BEARER_PATTERN.test(token)) return token;
  const fault = token === "" ? "holds no token" : "holds characters that no token has";
  throw new AskError("token_unusable", `${where} ${fault}; it must hold what "callnumber token create" printed, alone`);
}

function contentOf(file: string): string {
  try {
    return readPrivateFile(file, "the token file");
  } catch (error) {
    throw new AskError("token_unusable", (error as Error).message, { cause: error });
  }
}
