// Stores the messages of an mbox in SQLite, each under a call number.
//   node import.mjs letters.mbox mail.db
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ClientError, createClient } from "@callnumber/client";
import { DatabaseSync } from "@photostructure/sqlite"; // From Node.js 24 on, node:sqlite is the same.

const [mbox, archive] = process.argv.slice(2);
const BATCH_SIZE = 100;

const database = new DatabaseSync(archive, { timeout: 60_000 });
database.exec(`
  pragma journal_mode = wal; -- Others read while this writes.
  pragma synchronous = full; -- A commit is on the disk before its numbers count as used.
  create table if not exists facts (name text primary key, value text not null) strict;
  create table if not exists messages (
    call_number text not null collate binary primary key check ( -- Byte for byte: a and A are different digits.
      length(cast(call_number as blob)) = 8 and call_number not glob '*[^0-9A-Za-z]*' and call_number <= 'dxlGgaI3'),
    content_hash blob not null unique, -- Which message it is. A number can't say that.
    content blob not null
  ) strict;
`);
const isStored = database.prepare("select 1 from messages where content_hash = ?");
// A plain INSERT fails if the number exists. OR IGNORE, OR REPLACE or an upsert would lose a message.
const insert = database.prepare("insert into messages values (?, ?, ?)");
const pin = database.prepare("insert into facts values ('store_id', ?)");
const pinnedId = () => database.prepare("select value from facts where name = 'store_id'").get()?.value;

const client = createClient({
  coordinator: process.env.CALLNUMBER_COORDINATOR ?? "http://127.0.0.1:7300",
  holder: { name: "minimal-importer" },
  expectedStoreId: pinnedId(), // Numbers of any other store are rejected.
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => client.close());

try {
  const messages = messagesOf(mbox);
  for (let start = 0; start < messages.length; start += BATCH_SIZE) {
    await store(messages.slice(start, start + BATCH_SIZE));
  }
} catch (error) {
  if (!(error instanceof ClientError)) throw error;
  const isStopped = error.code === "client_closed";
  console.error(isStopped ? "Stopped by a signal. The next import goes on from here." : error.message);
  process.exitCode = isStopped ? 0 : 1;
} finally {
  // The rest of the run is given up. No run is kept for the next time: there are a billion.
  await client.close();
  database.close();
}

/** In this order: look up, take numbers, lock, store all or nothing. */
async function store(batch) {
  const fresh = batch.filter(({ hash }) => isStored.get(hash) === undefined);
  if (fresh.length === 0) return;
  // May wait for the coordinator, so nothing is locked yet.
  const callNumbers = await client.take(fresh.length);
  database.exec("begin immediate");
  try {
    if (pinnedId() === undefined) pin.run(client.storeId);
    if (pinnedId() !== client.storeId) throw new Error(`The archive is pinned to the store ${pinnedId()}`);
    for (const [index, { hash, content }] of fresh.entries()) {
      // Another process, or a copy in this file, may have been faster. Its number is left unused.
      if (isStored.get(hash) === undefined) insert.run(callNumbers[index], hash, content);
    }
    database.exec("commit");
  } catch (error) {
    if (database.isTransaction) database.exec("rollback");
    throw error;
  }
  console.log(`${fresh.length} messages, the first as ${callNumbers[0]}`);
}

/** Real mailboxes are less regular, and larger: see the sources of callnumber-archive. */
function messagesOf(path) {
  const parts = readFileSync(path, "latin1").split(/(?<=^|\n\n)(?=From \S+ .*\d{4}\n)/);
  return parts.map((part) => {
    const content = Buffer.from(part, "latin1");
    return { content, hash: createHash("sha256").update(content).digest() };
  });
}
