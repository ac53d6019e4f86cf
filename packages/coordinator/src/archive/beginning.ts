/** What a file says by its first bytes: what it is, and what it would have to be turned into to be read. Knows nothing of archives. */

const SQLITE_TEXT = "SQLite format 3\0";
const SQLITE = Buffer.from(SQLITE_TEXT);
const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const GZIP = Buffer.from([0x1f, 0x8b]);
const LENGTH_MAX = SQLITE.length;

/** Files that can't be read as they are. */
const STRANGE: readonly (readonly [beginning: readonly number[], remedy: string])[] = [
  [[0xff, 0xfe], "it is UTF-16: pipe it through iconv -f UTF-16 -t UTF-8"],
  [[0xfe, 0xff], "it is UTF-16: pipe it through iconv -f UTF-16 -t UTF-8"],
  [[...GZIP], "it is compressed: pipe it through gzip -dc"],
  [[0x28, 0xb5, 0x2f, 0xfd], "it is compressed: pipe it through zstd -dc"],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], "it is compressed: pipe it through xz -dc"],
];

export interface Begun {
  readonly isSqlite: boolean;
  readonly isCompressed: boolean;
  /** Why it can't be read as text, and what to do; undefined when it can. */
  readonly remedy: string | undefined;
  /** All of it, without the mark that some programs put in front of UTF-8. */
  readonly chunks: AsyncGenerator<Buffer>;
}

/** Reads as many chunks as tell how it begins. */
export async function beginningOf(source: AsyncIterable<Buffer>): Promise<Begun> {
  const iterator = source[Symbol.asyncIterator]();
  let beginning: Buffer = Buffer.alloc(0);
  while (beginning.length < LENGTH_MAX) {
    const { done, value } = await iterator.next();
    if (done) break;
    beginning = beginning.length === 0 ? value : Buffer.concat([beginning, value]);
  }
  return {
    isSqlite: beginsWith(beginning, SQLITE),
    isCompressed: isGzip(beginning),
    remedy: STRANGE.find(([bytes]) => beginsWith(beginning, Buffer.from(bytes)))?.[1],
    chunks: allOf(beginsWith(beginning, UTF8_MARK) ? beginning.subarray(UTF8_MARK.length) : beginning, iterator),
  };
}

/** By their first bytes. */
export function isGzip(bytes: Buffer): boolean {
  return beginsWith(bytes, GZIP);
}

function beginsWith(bytes: Buffer, beginning: Buffer): boolean {
  return bytes.subarray(0, beginning.length).equals(beginning);
}

async function* allOf(beginning: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield beginning;
  for (;;) {
    const { done, value } = await rest.next();
    if (done) return;
    yield value;
  }
}
