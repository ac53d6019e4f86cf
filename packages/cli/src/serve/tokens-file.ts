/** The tokens file of `serve` while it runs: read again within seconds after a change, so that a revoked token stops working, and on SIGHUP. */
import { statSync } from "node:fs";
import { type Log, readTokensFile, TokenAuthenticator, type TokenRecord } from "@callnumber/coordinator";
import { invocation } from "../invocation.js";

/** A change is read when two looks in a row find the same file: an editor may have half written it. So this is half the time to revoke. */
const LOOK_EVERY_MS = 2_000;
/** A line of a terminal has room for these. The log has all, once they are read again. */
const PRINTED_IDS_MAX = 6;

/**
 * Returns an authenticator with the tokens of a file, and keeps it up to date to the end of the command. A file that can't be read leaves
 * the tokens as they were, and is reported once. `greeting`: the tokens that are accepted at first.
 * @throws TokensFileError when the file can't be read now.
 */
export function openTokensFile(
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
