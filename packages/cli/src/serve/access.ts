/**
 * Which clients may use the coordinator of `serve`, and how much: those with a token of a file, reloaded on SIGHUP; else every client
 * of this machine, or every client.
 */
import {
  type Allowance,
  type Authenticator,
  HOLDER_ALLOWANCE,
  LeaseLimits,
  type Log,
  NO_AUTH,
  readTokensFile,
  TOKEN_ALLOWANCE,
  TokenAuthenticator,
  type TokenRecord,
} from "@callnumber/coordinator";
import { isLoopback } from "@callnumber/coordinator/machine";
import { invocation } from "../invocation.js";

/** A line of a terminal has room for these. The log has all, after a SIGHUP. */
const PRINTED_IDS_MAX = 6;

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

/**
 * Returns the access. From then on, SIGHUP reloads the tokens file. A file that can't be read leaves the tokens as they were.
 * @throws TokensFileError when the file can't be read now.
 */
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
  const { records } = readTokensFile(tokensFile);
  const authenticator = new TokenAuthenticator(records);
  invocation().onSignal("SIGHUP", () => {
    try {
      const { records: read } = readTokensFile(tokensFile);
      authenticator.replace(read);
      log.info({ tokenCount: read.length, tokenIds: read.map(({ id }) => id) }, "tokens_reloaded");
      printError(formatTokens(read, tokensFile));
    } catch (error) {
      const { message: reason, code } = error as NodeJS.ErrnoException;
      log.error({ code, reason }, "tokens_reload_failed");
      printError(`the tokens read before are still accepted: ${reason}`);
    }
  });
  return { greeting: formatTokens(records, tokensFile), authenticator, isForOperators: true };
}

function formatTokens(records: readonly TokenRecord[], file: string): string {
  if (records.length === 0) return `no tokens in ${file}: every request is rejected`;
  const ids = records.slice(0, PRINTED_IDS_MAX).map(({ id }) => id);
  const others = records.length - ids.length;
  const text = [...ids, ...(others > 0 ? [`and ${others} more: callnumber token list`] : [])].join(", ");
  return `${records.length} ${records.length === 1 ? "token" : "tokens"} in ${file}: ${text}`;
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
