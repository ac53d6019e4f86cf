/** The token that an importing process bears: one that was handed over, or what stands in a file, read for each request. */
import { readFileSync } from "node:fs";
import { ImporterError } from "../importer-error.js";

/** What RFC 6750 lets a token have. */
const TOKEN_PATTERN = /^[\w.~+/-]+=*$/;

export interface BearerSettings {
  readonly token: string | undefined;
  /** Goes before `token`. */
  readonly tokenFile: string | undefined;
}

/**
 * What a client is given as its token: none, a text, or a function that reads the file as it is then.
 * @throws ImporterError `token_unusable` when there is no token where one should be; so does the function. Never says what it found.
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
    return checked(readFileSync(file, "utf8").trim(), file);
  } catch (error) {
    if (error instanceof ImporterError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw unusable(`${file} can't be read (${code ?? message})`, error);
  }
}

function checked(token: string, where: string): string {
  if (TOKEN_PATTERN.test(token)) return token;
  throw unusable(`${where} holds ${token === "" ? "no token" : "characters that no token has"}`);
}

function unusable(message: string, cause?: unknown): ImporterError {
  const remedy = "It must hold what callnumber token create printed, and nothing else.";
  return new ImporterError("token_unusable", message, remedy, { cause });
}
