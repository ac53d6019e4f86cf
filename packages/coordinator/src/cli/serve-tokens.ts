/** Who is let in by `serve`: the tokens of a file, read again on SIGHUP; or everybody on this machine, or everybody by an operator's word. */
import type { Option } from "commander";
import { z } from "zod";
import { type Door, OPEN_DOOR } from "../http/access.js";
import type { HostNames } from "../http/host-names.js";
import type { SignInTokens } from "../http/sessions.js";
import type { Log } from "../log.js";
import { isLoopback } from "../platform/loopback.js";
import { readTokensFile } from "../tokens/read-tokens-file.js";
import { TokenDoor } from "../tokens/token-door.js";
import type { TokenRecord } from "../tokens/token-record.js";
import { TokensFileError } from "../tokens/tokens-file-error.js";
import { running } from "./command-io.js";
import { checkedOption } from "./options.js";

/** A terminal has room for so many on a line; the log has all, after a SIGHUP. */
const IDS_SAID_MAX = 6;

export interface AdmissionOptions {
  readonly host: string;
  readonly tokensFile?: string;
  readonly listenWithoutTokens?: boolean;
  readonly allowHost: readonly string[];
}

/** What the server needs to know of it. */
export interface Admission {
  /** For the operator at the terminal: which tokens are accepted. */
  readonly greeting: string;
  readonly door: Door;
  /** With which one signs in at the console; undefined where nobody is asked for a token. */
  readonly signInTokens: SignInTokens | undefined;
  /** Which hosts requests must name; undefined where everybody is asked for a token: a page under a foreign name has none. */
  readonly hostNames: HostNames | undefined;
  /** Whoever is let in as an operator is one. Under a name that somebody allowed, strangers may come through a proxy. */
  readonly isForOperators: boolean;
}

/** Labels of letters, digits, `-` and `_`, as names of hosts and of containers are; an address is answered under or not by other rules. */
const HOST_NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

export function allowHostOption(): Option {
  const names = z
    .string()
    .transform((text) => text.toLowerCase().split(","))
    .refine(
      (all) => all.every((name) => HOST_NAME.test(name)),
      "must be names of hosts without ports, with commas between them",
    );
  return checkedOption(
    "--allow-host <names>",
    "names under which requests are answered where nobody is asked for a token, beside localhost and addresses",
    names,
  ).default([], "none");
}

/** @throws TypeError where strangers would be let in without a word of the operator. */
export function mustKeepStrangersOut({
  host,
  tokensFile,
  listenWithoutTokens = false,
  allowHost,
}: AdmissionOptions): void {
  if (tokensFile !== undefined && allowHost.length > 0) {
    throw new TypeError(
      "--allow-host is for where nobody is asked for a token: with --tokens-file any name is answered under",
    );
  }
  if (tokensFile !== undefined && listenWithoutTokens) {
    throw new TypeError(
      "--tokens-file and --listen-without-tokens exclude each other: either everybody is asked, or nobody",
    );
  }
  if (isLoopback(host) || tokensFile !== undefined || listenWithoutTokens) return;
  throw new TypeError(
    `--host ${host} lets others in, and nobody is asked for a token: whoever reaches the port can use up runs. ` +
      "Say --tokens-file with the tokens that are good (callnumber token create), listen on 127.0.0.1, or say --listen-without-tokens " +
      "when a firewall or a proxy keeps strangers out",
  );
}

/**
 * From now on SIGHUP makes the process read its tokens again, when there is a file of them. One that can't be read leaves those of before.
 * @throws TokensFileError when the file can't be read now.
 */
export async function admissionOf(
  { tokensFile, listenWithoutTokens = false, allowHost }: AdmissionOptions,
  log: Log,
  say: (text: string) => void,
): Promise<Admission> {
  if (tokensFile === undefined) {
    const greeting = listenWithoutTokens
      ? "nobody is asked for a token: whoever reaches the port may do everything (--listen-without-tokens)"
      : "nobody is asked for a token: only this machine is listened to";
    const hostNames: HostNames = { addresses: listenWithoutTokens ? "any" : "loopback", names: new Set(allowHost) };
    const isForOperators = hostNames.addresses === "loopback" && hostNames.names.size === 0;
    return { greeting, door: OPEN_DOOR, signInTokens: undefined, hostNames, isForOperators };
  }
  const { records } = await readTokensFile(tokensFile);
  const door = new TokenDoor(records);
  let reread: Promise<void> = Promise.resolve();
  running().onSignal("SIGHUP", () => {
    // One after the other: the file as it was earlier must not win over a later one.
    reread = reread.then(() => readAgain(door, tokensFile, log, say));
  });
  return {
    greeting: inWords(records, tokensFile),
    door,
    signInTokens: door,
    hostNames: undefined,
    isForOperators: true,
  };
}

async function readAgain(door: TokenDoor, file: string, log: Log, say: (text: string) => void): Promise<void> {
  try {
    const { records } = await readTokensFile(file);
    door.replace(records);
    log.info({ tokenCount: records.length, tokenIds: records.map(({ id }) => id) }, "tokens_reread");
    say(inWords(records, file));
  } catch (error) {
    const { message: reason, code } = error as TokensFileError;
    log.error({ code, reason }, "tokens_not_reread");
    say(`the tokens of before stay good: ${reason}`);
  }
}

function inWords(records: readonly TokenRecord[], file: string): string {
  if (records.length === 0) return `no tokens in ${file}: NOBODY IS LET IN`;
  const ids = records.slice(0, IDS_SAID_MAX).map(({ id }) => id);
  const others = records.length - ids.length;
  const told = [...ids, ...(others > 0 ? [`and ${others} more: callnumber token list`] : [])].join(", ");
  return `${records.length} ${records.length === 1 ? "token" : "tokens"} in ${file}: ${told}`;
}
