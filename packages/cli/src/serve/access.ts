/** Which clients may use the coordinator of `serve`, and how much: those with a token of a file; else every client of this machine, or every client. */
import { type Allowance, type Authenticator, LeaseLimits, type Log, NO_AUTH } from "@callnumber/coordinator";
import { HOLDER_ALLOWANCE, TOKEN_ALLOWANCE } from "@callnumber/coordinator/internal";
import { isLoopback } from "@callnumber/coordinator/internal/machine";
import { openTokensFile } from "./tokens-file.js";

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
