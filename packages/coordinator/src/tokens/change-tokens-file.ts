/**
 * Changes a tokens file: whole on the disk under another name before it takes the place of the old one, so that a coordinator that reads
 * it at that moment, or a machine that loses its power, has the old tokens or the new ones. One change at a time: none loses another's token.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { holderOfLock, makeLockFile } from "../lock-file.js";
import { LinkLeadsNowhere, realPathOf } from "../platform/real-path.js";
import { readIfThere, type TokensFile } from "./read-tokens-file.js";
import { lineOf, TOKEN_COUNT_MAX, type TokenRecord } from "./token-record.js";
import { TokensFileError } from "./tokens-file-error.js";

const NEW_FILE_MODE = 0o600;
/** Another change takes milliseconds. */
const LOCK_PATIENCE_MS = 5_000;
const LOCK_RETRY_MS = 20;

/**
 * Puts what `change` makes of the records into the file; makes it, for its owner only, when it is not there. Owner, group and mode stay.
 * When it rejects, the file is as it was, or as it should be.
 * @throws TokensFileError, or what `change` throws.
 */
export async function changeTokensFile(
  path: string,
  change: (records: readonly TokenRecord[]) => readonly TokenRecord[],
): Promise<void> {
  // A link stays one: what is changed is the file behind it.
  const real = realPathOfTokens(path);
  await withLock(`${real}.lock`, async () => {
    const before = await readIfThere(real, { isKept: true });
    const records = change(before?.records ?? []);
    if (records.length > TOKEN_COUNT_MAX) {
      throw new TokensFileError(`${path} holds ${TOKEN_COUNT_MAX} tokens, and can't hold more; revoke one first`);
    }
    await replace(real, records.map(lineOf).join(""), before);
  });
}

function realPathOfTokens(path: string): string {
  try {
    return realPathOf(path);
  } catch (error) {
    if (!(error instanceof LinkLeadsNowhere)) throw error;
    throw new TokensFileError(`the tokens file can't be made: ${error.message}`, { cause: error });
  }
}

async function replace(path: string, text: string, before: TokensFile | undefined): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.unfinished`;
  try {
    await write(unfinished, text, before);
    await rename(unfinished, path);
    await syncFolderOf(path);
  } catch (error) {
    await unlink(unfinished).catch(() => {});
    throw unwritable(path, error);
  }
}

async function write(path: string, text: string, before: TokensFile | undefined): Promise<void> {
  const file = await open(path, "wx", NEW_FILE_MODE);
  try {
    if (before !== undefined) await takeRights(file, before);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A coordinator may read it by its group, or as an owner that is not the one who changes it. */
async function takeRights(file: FileHandle, { mode, uid, gid }: TokensFile): Promise<void> {
  const own = await file.stat();
  if (own.uid !== uid || own.gid !== gid) await file.chown(uid, gid);
  await file.chmod(mode);
}

async function syncFolderOf(path: string): Promise<void> {
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function withLock<T>(lock: string, act: () => Promise<T>): Promise<T> {
  await takeLock(lock);
  try {
    return await act();
  } finally {
    await unlink(lock).catch(() => {});
  }
}

async function takeLock(lock: string): Promise<void> {
  const endMs = performance.now() + LOCK_PATIENCE_MS;
  for (;;) {
    try {
      if (makeLockFile(lock)) return;
    } catch (error) {
      throw unwritable(lock, error);
    }
    if (performance.now() > endMs) throw locked(lock);
    await delay(LOCK_RETRY_MS);
  }
}

function locked(lock: string): TokensFileError {
  return new TokensFileError(
    `${holderOfLock(lock)} changes the tokens file: ${lock} is there. If no such process runs, it was killed: remove that file, and try again`,
  );
}

function unwritable(path: string, error: unknown): Error {
  if (error instanceof TokensFileError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  return new TokensFileError(`${path} can't be written (${code ?? message})`, { cause: error });
}
