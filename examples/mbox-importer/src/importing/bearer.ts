/** The token that an importing process bears: one that was handed over, or what stands in a file, read for each request. */
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import process from "node:process";
import { ImporterError } from "../errors.js";
import { READ_WITHOUT_WAITING } from "../read-flags.js";

/** What RFC 6750 lets a token have. */
const TOKEN_PATTERN = /^[\w.~+/-]+=*$/;

/** All that the token's file may allow, as for the commands: its owner to write, its group to read. */
const MODE_MAX = 0o640;
const MODE_BITS = 0o7777;

export interface BearerSettings {
  readonly token: string | undefined;
  /** Goes before `token`. */
  readonly tokenFile: string | undefined;
}

/**
 * What a client is given as its token: none, a text, or a function that reads the file as it is then.
 * @throws ImporterError `token_unusable` when there is no token where one should be, or others may read it; so does the function. Never says what it found.
 */
export function bearerOf({ token, tokenFile }: BearerSettings): { token?: string | (() => string) } {
  if (tokenFile !== undefined) {
    tokenIn(tokenFile);
    return { token: () => tokenIn(tokenFile) };
  }
  return token === undefined ? {} : { token: checked(token, "CALLNUMBER_TOKEN") };
}

function tokenIn(file: string): string {
  try {
    return checked(contentOf(file).trim(), file);
  } catch (error) {
    if (error instanceof ImporterError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw unusable(`${file} can't be read (${code ?? message})`, error);
  }
}

/** The mode of the very file that is read: under its name another one could come between. */
function contentOf(path: string): string {
  const file = openSync(path, READ_WITHOUT_WAITING);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw unusable(`${path} is no file`);
    const mode = stats.mode & MODE_BITS;
    if ((mode & ~MODE_MAX) !== 0 && process.platform !== "win32") throw openToOthers(path, mode);
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

function openToOthers(path: string, mode: number): ImporterError {
  const octal = mode.toString(8).padStart(4, "0");
  const message = `${path} has the mode ${octal}: whoever can read it could take runs in this importer's name`;
  return new ImporterError("token_unusable", message, `Only its owner, or a group too, may read it: chmod 600 ${path}`);
}

function checked(token: string, where: string): string {
  if (TOKEN_PATTERN.test(token)) return token;
  throw unusable(`${where} holds ${token === "" ? "no token" : "characters that no token has"}`);
}

function unusable(message: string, cause?: unknown): ImporterError {
  const remedy = "It must hold what callnumber token create printed, and nothing else.";
  return new ImporterError("token_unusable", message, remedy, { cause });
}
