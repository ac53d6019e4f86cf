/** Which clients may use the coordinator of `serve`, and how much: those with a token of a file; else every client of this machine, or every client. */

import { statSync } from "node:fs";
import {
  type Allowance,
  type Authenticator,
  LeaseLimits,
  type Log,
  NO_AUTH,
  readTokensFile,
  TokenAuthenticator,
  type TokenRecord,
} from "@callnumber/coordinator";
import { HOLDER_ALLOWANCE, TOKEN_ALLOWANCE } from "@callnumber/coordinator/internal";
import { isLoopback } from "@callnumber/coordinator/internal/machine";
import { invocation } from "../invocation.js";

export interface AccessOptions {
  readonly host: string;
  readonly tokensFile?: string;
  readonly listenWithoutTokens?: boolean;
  readonly allowHost: readonly string[];
}

interface Access {
  /** For the operator at the terminal: which tokens are accepted. */
  readonly greeting: string;
  readonly authenticator: Authenticator;
  /** Only operators have the access of one. Under an allowed name, other clients may come through a proxy. */
  readonly isForOperators: boolean;
}

/** @throws TypeError for access without tokens from other machines, unless the operator asks for it. */
export function rejectOpenAccess({ host, tokensFile, listenWithoutTokens = false, allowHost }: AccessOptions): void {
  if (tokensFile !== undefined && allowHost.length > 0) {
    throw new TypeError("--allow-host is for access without tokens: with --tokens-file requests may name any host");
  }
  if (tokensFile !== undefined && listenWithoutTokens) {
    throw new TypeError(
      "--tokens-file and --listen-without-tokens exclude each other: either every request needs a token, or none does",
    );
  }
  if (isLoopback(host) || tokensFile !== undefined || listenWithoutTokens) return;
  throw new TypeError(
    `--host ${host}: other machines could lease without a token. Pass --tokens-file (callnumber token create), ` +
      "--host 127.0.0.1, or --listen-without-tokens behind a firewall or proxy",
  );
}

/** Returns the access, and keeps it up to date with the tokens file. @throws TokensFileError when the file can't be read now. */
export function accessOf(
  { tokensFile, listenWithoutTokens = false, allowHost }: AccessOptions,
  log: Log,
  printError: (text: string) => void,
): Access {
  if (tokensFile === undefined) {
    const greeting = listenWithoutTokens
      ? "no token is required: every client that reaches the port may do everything (--listen-without-tokens)"
      : "no token is required: it listens to this machine only";
    return { greeting, authenticator: NO_AUTH, isForOperators: !listenWithoutTokens && allowHost.length === 0 };
  }
  return { ...openTokensFile(tokensFile, log, printError), isForOperators: true };
}

export interface LimitOptions {
  readonly host: string;
  readonly tokensFile?: string;
  readonly tokenBurstRuns?: number;
  readonly tokenRunsPerSecond?: number;
  readonly holderBurstRuns?: number;
  readonly holderRunsPerSecond?: number;
}

/** Without tokens, and on loopback only, there are no limits but those of the command line. */
export function limitsOf(options: LimitOptions): LeaseLimits {
  const isTrusted = isLoopback(options.host) && options.tokensFile === undefined;
  return new LeaseLimits({
    token: allowanceOf(options.tokenBurstRuns, options.tokenRunsPerSecond, TOKEN_ALLOWANCE, isTrusted),
    holder: allowanceOf(options.holderBurstRuns, options.holderRunsPerSecond, HOLDER_ALLOWANCE, isTrusted),
  });
}

/** Either of the two turns a limit off; one of them alone turns it on, with the default for the other. */
function allowanceOf(
  burstRuns: number | undefined,
  runsPerSecond: number | undefined,
  byDefault: Allowance,
  isTrusted: boolean,
): Allowance | undefined {
  if (burstRuns === 0 || runsPerSecond === 0) return undefined;
  if (isTrusted && burstRuns === undefined && runsPerSecond === undefined) return undefined;
  return { atOnce: burstRuns ?? byDefault.atOnce, perSecond: runsPerSecond ?? byDefault.perSecond };
}

/** A change is read when two looks in a row find the same file: an editor may have half written it. So this is half the time to revoke. */
const LOOK_EVERY_MS = 2_000;
/** A line of a terminal has room for these. The log has all, once they are read again. */
const PRINTED_IDS_MAX = 6;

/**
 * Returns an authenticator with the tokens of a file, and keeps it up to date to the end of the command. A file that can't be read leaves
 * the tokens as they were, and is reported once. `greeting`: the tokens that are accepted at first.
 * @throws TokensFileError when the file can't be read now.
 */
function openTokensFile(
  file: string,
  log: Log,
  printError: (text: string) => void,
): { readonly authenticator: TokenAuthenticator; readonly greeting: string } {
  // Before the file is read: a change in between is found by the next look.
  let read = stateOf(file);
  const { records } = readTokensFile(file);
  const authenticator = new TokenAuthenticator(records);
  let found = read;
  let failure: string | undefined;
  const reload = (isRequested: boolean) => {
    read = stateOf(file);
    try {
      const { records: now } = readTokensFile(file);
      failure = undefined;
      authenticator.replace(now);
      log.info({ tokenCount: now.length, tokenIds: now.map(({ id }) => id) }, "tokens_reloaded");
      printError(formatTokens(now, file));
    } catch (error) {
      const { message: reason, code } = error as NodeJS.ErrnoException;
      if (reason === failure && !isRequested) return;
      failure = reason;
      log.error({ code, reason }, "tokens_reload_failed");
      printError(`the tokens read before are still accepted: ${reason}`);
    }
  };
  const look = () => {
    const before = found;
    found = stateOf(file);
    // After a failure it is read each time: its cause need not show in the state of the file.
    if (found === before && (found !== read || failure !== undefined)) reload(false);
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  invocation().onEnd(() => clearInterval(timer));
  invocation().onSignal("SIGHUP", () => reload(true));
  return { authenticator, greeting: formatTokens(records, file) };
}

/** Returns what changes with a file, or with what a link leads to; cheaper than its content. */
function stateOf(file: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join();
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

function formatTokens(records: readonly TokenRecord[], file: string): string {
  if (records.length === 0) return `no tokens in ${file}: every request is rejected`;
  const ids = records.slice(0, PRINTED_IDS_MAX).map(({ id }) => id);
  const others = records.length - ids.length;
  const text = [...ids, ...(others > 0 ? [`and ${others} more: callnumber token list`] : [])].join(", ");
  return `${records.length} ${records.length === 1 ? "token" : "tokens"} in ${file}: ${text}`;
}
