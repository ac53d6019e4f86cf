/**
 * The control for the embedded store: a plain counter in SQLite, as durable as SQLite can make it, with nothing that looks after it.
 * Argument: JSON with `path`. Input and output as of leasing-process.mjs, as far as it knows them.
 */
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { DatabaseSync } from "@photostructure/sqlite";

const { path } = JSON.parse(process.argv[2]);
const database = new DatabaseSync(path);
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS counter (run INTEGER); INSERT INTO counter SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM counter)`);
const next = database.prepare("UPDATE counter SET run = run + 1 RETURNING run");
const print = (text) => writeSync(1, `${text}\n`);

print("open");
for await (const line of createInterface({ input: process.stdin })) {
  const [word, count] = line.split(" ");
  if (word === "stop") break;
  for (let lease = 0; lease < Number(count); lease++) print(next.get().run);
  print("done");
}
database.close();
process.exit(0);
