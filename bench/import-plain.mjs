/**
 * The least that an importer does: splits an mbox, parses each header by the library, takes a number, inserts in transactions of 256 messages.
 * It checks nothing, finds nothing again, and reads the whole file into memory. Arguments: mbox, database, coordinator.
 */
import { readFileSync } from "node:fs";
import { createClient } from "@callnumber/client";
import { DatabaseSync } from "@photostructure/sqlite";
import PostalMime from "postal-mime";

const [mbox, path, coordinator] = process.argv.slice(2);
const BATCH_COUNT = 256;
const bytes = readFileSync(mbox);
const starts = [0];
for (let at = bytes.indexOf("\nFrom "); at >= 0; at = bytes.indexOf("\nFrom ", at + 1)) {
  const line = bytes.toString("latin1", at + 1, bytes.indexOf("\n", at + 1));
  if (/\d\d:\d\d:\d\d +\d{4}$/.test(line)) starts.push(at + 1);
}
const client = createClient({ coordinator, holder: { name: "plain" } });
const database = new DatabaseSync(path);
database.exec("pragma journal_mode = wal; pragma synchronous = full;");
database.exec(`create table messages (call_number text primary key, message_id text, subject text, sender text, date text,
  raw blob not null)`);
const insert = database.prepare("insert into messages values (?, ?, ?, ?, ?, ?)");
for (let from = 0; from < starts.length; from += BATCH_COUNT) {
  const rows = [];
  for (let index = from; index < Math.min(from + BATCH_COUNT, starts.length); index++) {
    const part = bytes.subarray(starts[index], starts[index + 1]);
    const raw = part.subarray(part.indexOf("\n") + 1);
    const end = raw.indexOf("\n\n");
    const { messageId, subject, from: sender, date } = await PostalMime.parse(raw.subarray(0, end + 1));
    rows.push([await client.next(), messageId ?? null, subject ?? null, sender?.address ?? null, date ?? null, raw]);
  }
  database.exec("begin immediate");
  for (const row of rows) insert.run(...row);
  database.exec("commit");
}
await client.close();
database.close();
