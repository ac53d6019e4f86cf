/**
 * Changes a tokens file. The new file is whole on the disk before it replaces the old one: a coordinator that reads it, or a machine that
 * loses power, has the old tokens or the new ones. Its name is the lock: changes wait for each other.
 */
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { LinkLeadsNowhere, realPathOf } from "@callnumber/coordinator/machine";
import {
  lineOf,
  readIfThere,
  TOKEN_COUNT_MAX,
  type TokenRecord,
  TokensFileError,
} from "@callnumber/coordinator/operator";

const NEW_FILE_MODE = 0o600;
/** Another change takes milliseconds. */
const LOCK_WAIT_MAX_MS = 5_000;
const LOCK_RETRY_MS = 20;

type Change = (records: readonly TokenRecord[]) => readonly TokenRecord[];

/**
 * Replaces the records by what `change` returns. Creates the file, for its owner only, where there is none. Owner, group and mode stay.
 * When it rejects, the file has the old records or the new ones.
 * @throws TokensFileError, or what `change` throws.
 */
export async function changeTokensFile(path: string, change: Change): Promise<void> {
  // A link stays one: the file behind it is changed.
  const real = realPathOfTokens(path);
  const next = `${real}.lock`;
  const file = await createNext(next);
  try {
    await writeChanged(file, real, change).finally(() => file.close());
    await rename(next, real);
  } catch (error) {
    await unlink(next).catch(() => {});
    throw error instanceof Error && "syscall" in error ? unwritable(real, error) : error;
  }
  const directory = await open(dirname(real), "r");
  await directory.sync().finally(() => directory.close());
}

function realPathOfTokens(path: string): string {
  try {
    return realPathOf(path);
  } catch (error) {
    if (!(error instanceof LinkLeadsNowhere)) throw error;
    throw new TokensFileError(`the tokens file can't be made: ${error.message}`, { cause: error });
  }
}

/** Creates the file, which only one process can. */
async function createNext(path: string): Promise<FileHandle> {
  const endMs = performance.now() + LOCK_WAIT_MAX_MS;
  for (;;) {
    try {
      return await open(path, "wx", NEW_FILE_MODE);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unwritable(path, error);
    }
    if (performance.now() > endMs) {
      throw new TokensFileError(
        `another process changes the tokens file: ${path} is there. If no such process runs, it was killed: remove that file, and try again`,
      );
    }
    await delay(LOCK_RETRY_MS);
  }
}

async function writeChanged(file: FileHandle, path: string, change: Change): Promise<void> {
  const before = await readIfThere(path, { isKept: true });
  const records = change(before?.records ?? []);
  if (records.length > TOKEN_COUNT_MAX) {
    throw new TokensFileError(`${path} holds ${TOKEN_COUNT_MAX} tokens, and can't hold more; revoke one first`);
  }
  if (before !== undefined) {
    // A coordinator may read the file by its group, or as another owner than the user who changes it.
    const own = await file.stat();
    if (own.uid !== before.uid || own.gid !== before.gid) await file.chown(before.uid, before.gid);
    await file.chmod(before.mode);
  }
  await file.writeFile(records.map(lineOf).join(""));
  await file.sync();
}

function unwritable(path: string, error: unknown): TokensFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new TokensFileError(`${path} can't be written (${code ?? message})`, { cause: error });
}
