/**
 * What a server keeps on disk: its dump, its AOF, its cluster's file. Read, put back, cut.
 * Knows nothing of processes: whoever changes a folder sees to it that no server runs on it.
 */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";

/** The contents of each file by its path in the folder. */
export type FolderContents = ReadonlyMap<string, Buffer>;

/** They stand in the folder too, and are not data. */
const NOT_DATA = new Set(["redis.conf", "redis.log", "redis.sock", "users.acl"]);

/** Paths of all data files, from `directory` down. */
export async function dataFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return files.map((file) => relative(directory, file)).filter((file) => !NOT_DATA.has(file));
}

export async function readContents(directory: string): Promise<FolderContents> {
  const files = await dataFiles(directory);
  return new Map(await Promise.all(files.map(async (file) => [file, await readFile(join(directory, file))] as const)));
}

/** The folder then has these data files and no others. */
export async function writeContents(directory: string, contents: FolderContents): Promise<void> {
  for (const file of await dataFiles(directory)) await rm(join(directory, file));
  for (const [file, bytes] of contents) {
    await mkdir(dirname(join(directory, file)), { recursive: true });
    await writeFile(join(directory, file), bytes);
  }
}

/**
 * The path of the AOF that the server appends to: the last incremental file that the manifest names. Only this one may
 * end in the middle; the server refuses to start where another one does.
 * @throws Error when there is none: the server keeps no AOF, or keeps it in one file as before Redis 7.
 */
export async function appendedAof(directory: string): Promise<string> {
  const files = await dataFiles(directory);
  const manifest = files.find((file) => file.endsWith(".manifest") && !basename(file).startsWith("temp-"));
  const lines = manifest === undefined ? "" : await readFile(join(directory, manifest), "utf8");
  const names = [...lines.matchAll(/^file (\S+) seq \d+ type i/gm)].map(([, name]) => name as string);
  if (manifest === undefined || names.length === 0) throw new Error(`${basename(directory)} holds no AOF to append to`);
  return join(dirname(manifest), names.at(-1) as string);
}
