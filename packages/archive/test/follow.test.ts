import { appendFileSync, chmodSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { appendFile, chmod, copyFile, mkdir, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { beforeEach, expect, inject, test } from "vitest";
import { seededBelow } from "../../../test/faults/seeded-random.js";
import { Follower } from "../src/sources/follow.js";
import { readRange } from "../src/sources/read-range.js";
import type { Problem, Range } from "../src/sources/source.js";
import { temporaryDirectory, tinyMbox } from "./importing.js";

/** Longer than any test: the last message of an mbox stays pending. */
const NEVER_MS = 3_600_000;
const below = seededBelow(inject("seed"));
const TINY = tinyMbox(9);
const tiny = (number: number) => TINY.subarray(tinyMbox(number - 1).length, tinyMbox(number).length);

let directory: string;
let mbox: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  mbox = join(directory, "tiny.mbox");
});

/** Follows `path` until the test ends. `onRange` is called before a range is read. */
async function follow(path: string, settleMs = NEVER_MS, onRange: (range: Range) => void = () => {}) {
  const subjects: string[] = [];
  const ranges: Range[] = [];
  const notes: string[] = [];
  const stopping = new AbortController();
  const listener = {
    onSourceScanned: () => {},
    onNote: (note: string) => void notes.push(note),
    onCaughtUp: () => void notes.push("caught up"),
  };
  const follower = new Follower([path], { settleMs, pollIntervalMs: 10 }, listener);
  const consumed = (async () => {
    for await (const range of follower.ranges(stopping.signal)) {
      ranges.push(range);
      onRange(range);
      const problems: Problem[] = [];
      for (const message of await readRange(range)) {
        if ("raw" in message) subjects.push(`${message.raw.toString().split("\n")[0]?.replace("Subject: ", "")}`);
        else problems.push(message);
      }
      follower.imported(range, problems);
    }
  })();
  const stop = async () => {
    stopping.abort();
    await consumed;
  };
  return { subjects, ranges, notes, follower, [Symbol.asyncDispose]: stop };
}

test("a directory of .eml files yields each when it was quiet, whole, also if it quotes a separator or has no line end", async () => {
  const quoting = "Subject: quoting\n\nFrom a Mon Jan  5 10:00:00 2015\nSubject: quoted\n\nx";
  await writeFile(join(directory, "a.eml"), quoting);
  await writeFile(join(directory, "2003"), tinyMbox(2));
  await using following = await follow(directory, 50);
  await expect.poll(() => following.subjects.toSorted()).toEqual(["1", "2", "quoting"]);
  await writeFile(join(directory, "b.eml"), "Subject: b\n\nhalf");
  await expect.poll(() => following.subjects).toContain("b");
  const found = following.ranges.flatMap(({ kind, items }) => (kind === "maildir" ? items : []));
  expect(found.map((item) => (item as { unique?: string }).unique)).toEqual(["a.eml", "b.eml"]);
  expect(following.notes).toEqual(["caught up"]);
});

test("a growing mbox yields each message when the next one begins, and none of it before", async () => {
  await writeFile(mbox, TINY.subarray(0, 0));
  await using following = await follow(mbox);
  let written = 0;
  for (const end of [10, tinyMbox(1).length + 4, tinyMbox(1).length + 31, tinyMbox(4).length + 20, TINY.length]) {
    await appendFile(mbox, TINY.subarray(written, end));
    written = end;
    const complete = [1, 2, 3, 4, 5, 6, 7, 8, 9].filter((number) => tinyMbox(number).length + 32 <= end);
    await expect.poll(() => following.subjects).toEqual(complete.map(String));
  }
  expect(following.ranges.at(-1)?.items.map(({ number }) => number)).toEqual([4, 5, 6, 7, 8]);
});

test("the last message of an mbox counts when the file was quiet, but not while it ends in the middle of a line", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(2).length));
  await using following = await follow(mbox, 1);
  await expect.poll(() => following.subjects).toEqual(["1", "2"]);
  await appendFile(
    mbox,
    Buffer.concat([tiny(3), Buffer.from("From a Mon Jan  5 10:00:00 2015\nSubject: four\n\nhalf a li")]),
  );
  await expect.poll(() => following.notes.join()).toMatch(/ends in the middle of a line: its last message waits/);
  expect(following.subjects).toEqual(["1", "2", "3"]);
  await appendFile(mbox, "ne\n");
  await expect.poll(() => following.subjects).toEqual(["1", "2", "3", "four"]);
});

test("a message that grows after it counted as complete is yielded again, and named", async () => {
  await writeFile(mbox, tiny(1));
  await using following = await follow(mbox, 1);
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await appendFile(mbox, "more text\n");
  await expect.poll(() => following.subjects).toEqual(["1", "1"]);
  expect(following.notes.join()).toMatch(/message 1: it grew after it was stored, and gets a second number/);
});

test("an mbox that is rotated by a new name is read on under that name, and the new one from its start", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(3).length));
  await using following = await follow(mbox);
  await expect.poll(() => following.subjects).toEqual(["1", "2"]);
  await rename(mbox, `${mbox}.1`);
  await appendFile(`${mbox}.1`, Buffer.concat([tiny(4), tiny(5)]));
  await writeFile(mbox, Buffer.concat([tiny(6), tiny(7)]));
  await expect.poll(() => following.subjects.toSorted()).toEqual(["1", "2", "3", "4", "6"]);
  // The old one ends: its last message is pending for as long as any other.
  await appendFile(`${mbox}.1`, tiny(8));
  await expect.poll(() => following.subjects.toSorted()).toEqual(["1", "2", "3", "4", "5", "6"]);
});

test("an mbox that is rotated by copying and truncating is read from its start, and its copy too", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(4).length));
  await using following = await follow(mbox);
  await expect.poll(() => following.subjects).toEqual(["1", "2", "3"]);
  await copyFile(mbox, `${mbox}-20261125`);
  await truncate(mbox);
  await appendFile(mbox, Buffer.concat([tiny(5), tiny(6)]));
  await expect.poll(() => following.notes.join()).toMatch(/was truncated or rewritten: it is read from its start/);
  await expect.poll(() => following.subjects.toSorted()).toEqual(["1", "1", "2", "2", "3", "3", "5"]);
});

test("an mbox that is rewritten in its place is read from its start, also when it is longer than before", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(3).length));
  await using following = await follow(mbox);
  await expect.poll(() => following.subjects).toEqual(["1", "2"]);
  await writeFile(mbox, TINY.subarray(tinyMbox(3).length));
  await expect.poll(() => following.subjects).toEqual(["1", "2", "4", "5", "6", "7", "8"]);
});

test("an mbox that is deleted or moved away is named, with the message that was not complete, and followed when it comes again", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(2).length));
  await using following = await follow(mbox);
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await rm(mbox);
  await expect
    .poll(() => following.notes.join())
    .toMatch(/tiny.mbox was deleted, .* before its last message was complete/);
  await writeFile(mbox, Buffer.concat([tiny(3), tiny(4)]));
  await expect.poll(() => following.subjects).toEqual(["1", "3"]);
});

test("a range that was rejected is planned again, once, under the name that its file has by then", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(3).length));
  await using following = await follow(mbox);
  await expect.poll(() => following.subjects).toEqual(["1", "2"]);
  const [range] = following.ranges as [Range];
  const failed: Problem = { source: mbox, number: 1, byteOffset: 0, reason: "x", stored: false, isTransient: true };
  following.follower.imported(range, [failed]);
  expect(following.follower.unsolved).toEqual([failed]);
  await expect.poll(() => following.subjects).toEqual(["1", "2", "1", "2"]);
  following.follower.imported(range, []);
  expect(following.follower.unsolved).toEqual([]);
  following.follower.imported(range, [failed]);
  await rename(mbox, `${mbox}.1`);
  await expect.poll(() => following.ranges.map(({ path }) => path)).toEqual([mbox, mbox, `${mbox}.1`]);
});

test("a range whose file has been replaced yields nothing of the new one", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(3).length));
  await using following = await follow(mbox);
  await expect.poll(() => following.ranges).toHaveLength(1);
  await rename(mbox, join(directory, "other"));
  await writeFile(mbox, TINY);
  for (const message of await readRange(following.ranges[0] as Range)) {
    expect(message).toMatchObject({ stored: false, reason: "the file changed while it was imported" });
  }
});

test("a directory yields the mboxes that appear in it, without hidden files and locks", async () => {
  await using following = await follow(directory);
  await expect.poll(() => following.notes).toEqual(["caught up"]);
  await writeFile(join(directory, ".hidden.mbox"), tinyMbox(2));
  await writeFile(join(directory, "b.mbox.lock"), tinyMbox(2));
  await writeFile(join(directory, "a.mbox"), Buffer.concat([tiny(1), tiny(2)]));
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await writeFile(join(directory, "b.mbox"), Buffer.concat([tiny(3), tiny(4)]));
  await expect.poll(() => following.subjects).toEqual(["1", "3"]);
  await writeFile(join(directory, "c.mbox.gz"), Buffer.from("1f8b0800", "hex"));
  await expect.poll(() => following.notes.join()).toContain("its gzip data is cut");
});

test("an mbox that can't be read is named once, keeps no other from being read, and is read when it can be", async () => {
  const loop = join(directory, "a.mbox");
  await symlink(loop, loop);
  await writeFile(join(directory, "b.mbox"), Buffer.concat([tiny(1), tiny(2)]));
  await using following = await follow(directory);
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await writeFile(join(directory, "c.mbox"), Buffer.concat([tiny(3), tiny(4)]));
  await expect.poll(() => following.subjects).toEqual(["1", "3"]);
  expect(following.notes).toEqual([expect.stringContaining("ELOOP"), "caught up"]);
  expect(following.follower.unsolved).toMatchObject([{ source: loop, stored: false }]);
  await rm(loop);
  await writeFile(loop, Buffer.concat([tiny(5), tiny(6)]));
  await expect.poll(() => following.subjects).toEqual(["1", "3", "5"]);
});

test("a maildir yields what is delivered, once, also when its flags change", async () => {
  const maildir = join(directory, "maildir");
  for (const name of ["new", "cur", "tmp"]) await mkdir(join(maildir, name), { recursive: true });
  await writeFile(join(maildir, "cur", "1.host:2,S"), "Subject: 1\n\n");
  await using following = await follow(maildir);
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await writeFile(join(maildir, "tmp", "2.host"), "Subject: 2\n\n");
  await rename(join(maildir, "tmp", "2.host"), join(maildir, "new", "2.host"));
  await expect.poll(() => following.subjects).toEqual(["1", "2"]);
  await rename(join(maildir, "new", "2.host"), join(maildir, "cur", "2.host:2,S"));
  await writeFile(join(maildir, "new", "3.host"), "Subject: 3\n\n");
  await expect.poll(() => following.subjects).toEqual(["1", "2", "3"]);
});

test("a mailbox that does not exist yet is waited for, and its older files are read meanwhile", async () => {
  await writeFile(`${mbox}.1`, Buffer.concat([tiny(1), tiny(2)]));
  await using following = await follow(mbox);
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await expect.poll(() => following.notes).toEqual([`${mbox} is not there: waits for it`, "caught up"]);
  await writeFile(mbox, Buffer.concat([tiny(3), tiny(4)]));
  await expect.poll(() => following.subjects).toEqual(["1", "3"]);
  const missing = join(directory, "later", "new.mbox");
  await using other = await follow(missing);
  await mkdir(join(directory, "later"));
  await writeFile(missing, Buffer.concat([tiny(5), tiny(6)]));
  await expect.poll(() => other.subjects).toEqual(["5"]);
});

test("a link that is changed to another mbox is followed, and the first one to its end", async () => {
  const [one, two, link] = ["one", "two", "link"].map((name) => join(directory, name)) as [string, string, string];
  await writeFile(one, Buffer.concat([tiny(1), tiny(2)]));
  await writeFile(two, Buffer.concat([tiny(4), tiny(5)]));
  await symlink(one, link);
  await using following = await follow(link);
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await symlink(two, `${link}.new`);
  await rename(`${link}.new`, link);
  await expect.poll(() => following.subjects).toEqual(["1", "4"]);
  await appendFile(one, tiny(3));
  await expect.poll(() => following.subjects).toEqual(["1", "4", "2"]);
  expect(following.ranges.map((range) => range.kind === "mbox" && range.source)).toEqual([one, two, one]);
});

test("the files of a rotated mailbox have its name, and what was compressed while no importer ran is read", async () => {
  const upTo = (from: number, to: number) => TINY.subarray(tinyMbox(from - 1).length, tinyMbox(to).length);
  await writeFile(`${mbox}.2.gz`, gzipSync(upTo(1, 2)));
  await writeFile(`${mbox}.1`, upTo(3, 5));
  await writeFile(`${mbox}-20261125.gz`, gzipSync(upTo(6, 6)));
  await writeFile(`${mbox}-20261126.xz`, Buffer.from("fd377a585a0000", "hex"));
  await writeFile(`${mbox}.old`, TINY);
  await writeFile(mbox, upTo(7, 9));
  for (const path of [mbox, directory]) {
    await using following = await follow(path);
    await expect.poll(() => following.notes).toContain("caught up");
    const own = following.ranges.filter((range) => range.path !== `${mbox}.old`);
    const numbers = own.flatMap(({ items }) => items.map(({ number }) => number));
    expect(numbers).toHaveLength(7);
    expect(new Set(own.map((range) => range.kind === "mbox" && range.source))).toEqual(new Set([mbox]));
    expect(following.notes.join()).toContain("20261126.xz: it is compressed by xz");
    if (path === mbox) expect(following.subjects.toSorted()).toEqual(["1", "2", "3", "4", "6", "7", "8"]);
  }
});

test("the last message of a copy that ends in the middle of a line counts when the copy was quiet", async () => {
  await writeFile(
    mbox,
    Buffer.concat([tiny(1), Buffer.from("From a Mon Jan  5 10:00:00 2015\nSubject: half\n\nhalf a li")]),
  );
  await using following = await follow(mbox, 1);
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await copyFile(mbox, `${mbox}.1`);
  await truncate(mbox);
  await expect.poll(() => following.subjects.toSorted()).toEqual(["1", "1", "half"]);
});

test.each([true, false])(
  "a new mbox with the inode of an old one is not truncated, and a message is lost only if it is (%s)",
  async (isKept) => {
    await writeFile(`${mbox}.1`, Buffer.concat([tiny(1), tiny(2)]));
    await writeFile(mbox, Buffer.concat([tiny(3), tiny(4)]));
    await using following = await follow(mbox);
    await expect.poll(() => following.subjects).toEqual(["1", "3"]);
    // As logrotate with delaycompress does it, between two looks.
    if (isKept) writeFileSync(`${mbox}.2.gz`, gzipSync(Buffer.concat([tiny(1), tiny(2)])));
    rmSync(`${mbox}.1`);
    renameSync(mbox, `${mbox}.1`);
    writeFileSync(mbox, tiny(5));
    await appendFile(mbox, tiny(6));
    await expect.poll(() => following.subjects).toContain("5");
    const lost = `${mbox}.1 was deleted, moved to another directory or overwritten before its last message was complete`;
    if (isKept) await expect.poll(() => following.subjects.toSorted()).toEqual(["1", "1", "2", "3", "5"]);
    else await expect.poll(() => following.notes.join()).toContain(lost);
    expect(following.notes.join()).not.toContain("truncated");
  },
);

test("a mailbox that is rotated while its directory is read is not called deleted", async () => {
  const [first, rotated, last] = ["a", "b", "c"].map((name) => join(directory, name)) as [string, string, string];
  await writeFile(first, tiny(1));
  await writeFile(rotated, "");
  await writeFile(last, tiny(2));
  await using following = await follow(directory, NEVER_MS, ({ path }) => {
    if (path === first) renameSync(rotated, `${rotated}.1`);
    // After its name was asked for, and before the next list of names.
    if (path === last) writeFileSync(rotated, Buffer.concat([tiny(5), tiny(6)]));
  });
  await expect.poll(() => following.notes).toEqual(["caught up"]);
  // Both in one round.
  appendFileSync(last, tiny(4));
  appendFileSync(first, tiny(3));
  await expect.poll(() => following.subjects).toEqual(["1", "2", "5"]);
  expect(following.notes).toEqual(["caught up"]);
});

test("an mbox that is rotated while its new messages are imported is read on under its other name", async () => {
  const many = tinyMbox(30);
  await writeFile(mbox, many.subarray(0, tinyMbox(2).length));
  await using following = await follow(mbox, NEVER_MS, () => {
    if (following.ranges.length === 2) renameSync(mbox, `${mbox}.1`);
  });
  await expect.poll(() => following.subjects).toEqual(["1"]);
  await appendFile(mbox, many.subarray(tinyMbox(2).length));
  await expect.poll(() => following.ranges.length).toBeGreaterThan(2);
  await appendFile(`${mbox}.1`, tinyMbox(31).subarray(many.length));
  await expect.poll(() => following.subjects.at(-1)).toBe("30");
  expect(following.notes).toEqual(["caught up"]);
});

test("no rotation, whenever it comes, is taken for a loss, nor for other content", async () => {
  const ROTATION_COUNT = 150;
  await writeFile(mbox, "");
  await using following = await follow(mbox, 1);
  let delivered = 0;
  const deliver = () => appendFileSync(mbox, tinyMbox(delivered + 1).subarray(tinyMbox(delivered++).length));
  for (let rotation = 1; rotation <= ROTATION_COUNT; rotation++) {
    for (let count = below(3); count > 0; count--) deliver();
    await sleep(below(20));
    renameSync(mbox, `${mbox}-20261129-${rotation}`);
    if (below(2) === 0) await sleep(below(3));
    writeFileSync(mbox, "");
  }
  await expect.poll(() => new Set(following.subjects).size).toBe(delivered);
  expect(following.notes).toEqual(["caught up"]);
});

test("mail that comes while an mbox can't be read is read as soon as it can", async (ctx) => {
  if (process.getuid?.() !== 0) ctx.skip("only root can become another user");
  await chmod(directory, 0o755);
  await writeFile(mbox, Buffer.concat([tiny(1), tiny(2)]));
  await using following = await follow(mbox);
  await expect.poll(() => following.subjects).toEqual(["1"]);
  try {
    // Between two looks.
    chmodSync(mbox, 0);
    appendFileSync(mbox, Buffer.concat([tiny(3), tiny(4)]));
    process.seteuid?.(65_534);
    await expect.poll(() => following.follower.unsolved).toMatchObject([{ reason: expect.stringContaining("EACCES") }]);
  } finally {
    process.seteuid?.(0);
  }
  await chmod(mbox, 0o600);
  await expect.poll(() => following.subjects).toEqual(["1", "2", "3"]);
  expect(following.follower.unsolved).toEqual([]);
});

test("a range that could not be read is read when its mbox can be, also if opening that failed meanwhile", async (ctx) => {
  if (process.getuid?.() !== 0) ctx.skip("only root can become another user");
  await chmod(directory, 0o755);
  await writeFile(mbox, TINY);
  await using following = await follow(mbox, NEVER_MS, () => {
    if (following.ranges.length > 1) return;
    chmodSync(mbox, 0);
    process.seteuid?.(65_534);
  });
  try {
    await expect.poll(() => following.notes.join()).toContain("EACCES");
  } finally {
    process.seteuid?.(0);
  }
  await chmod(mbox, 0o600);
  await expect.poll(() => following.subjects).toEqual(["1", "2", "3", "4", "5", "6", "7", "8"]);
  expect(following.follower.unsolved).toEqual([]);
});

test("an mbox of a directory keeps its name through a rotation that makes no new file", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(3).length));
  await using following = await follow(directory, NEVER_MS, () => {
    if (following.ranges.length === 1) renameSync(mbox, `${mbox}.1`);
  });
  await expect.poll(() => following.subjects).toEqual(["1", "2"]);
  await appendFile(`${mbox}.1`, tiny(4));
  await expect.poll(() => following.subjects).toEqual(["1", "2", "3"]);
  const found = following.ranges.map((range) => range.kind === "mbox" && [range.path, range.source]);
  expect(found).toEqual([
    [mbox, mbox],
    [`${mbox}.1`, mbox],
    [`${mbox}.1`, mbox],
  ]);
});

test("messages that can't be read are named in one line, when no rotation explains it", async () => {
  await writeFile(mbox, TINY.subarray(0, tinyMbox(4).length));
  await using following = await follow(mbox, NEVER_MS, () => renameSync(mbox, join(directory, "elsewhere")));
  const reason = /^.*tiny.mbox, message 1 and 2 more: it can't be read: ENOENT/;
  await expect.poll(() => following.notes.filter((note) => reason.test(note))).toHaveLength(1);
  // Deleted, and not read to its end.
  await expect.poll(() => following.notes).toHaveLength(3);
  expect(following.follower.unsolved).toHaveLength(3);
});

test("a deletion is named at the end, if not before", async () => {
  await writeFile(mbox, "");
  const following = await follow(mbox);
  await expect.poll(() => following.notes).toEqual(["caught up"]);
  await rm(mbox);
  await sleep(100);
  await following[Symbol.asyncDispose]();
  expect(following.notes).toEqual(["caught up", `${mbox} was deleted, or moved to another directory`]);
});

test("a maildir names the maildirs inside, also those that come later", async () => {
  const maildir = join(directory, "maildir");
  for (const name of ["new", "cur", ".Sent/new", ".Sent/cur"]) await mkdir(join(maildir, name), { recursive: true });
  await using following = await follow(maildir);
  await expect
    .poll(() => following.notes)
    .toContain(`${maildir} contains the maildir .Sent, which is not imported: pass it too`);
  for (const name of [".Later/cur", ".Later/new"]) await mkdir(join(maildir, name), { recursive: true });
  await expect.poll(() => following.notes.join()).toContain("contains the maildir .Later, ");
  expect(following.notes.filter((note) => note.includes(".Sent"))).toHaveLength(1);
});
