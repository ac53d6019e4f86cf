/** The control on an embedded store: a plain counter in SQLite, in a file beside the store's that shares its fate. */
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { Control } from "./control.js";

/** A loop of synchronous writes would leave nobody else a turn. */
const EVERY_MS = 2;

/** @param path where the counter is now; it is opened anew for each number, as by a process that was killed and started again. */
export function sqliteControl(path: () => string): Control {
  return new Control({
    next: async () => {
      await delay(EVERY_MS);
      const isNew = !existsSync(path());
      const database = new DatabaseSync(path());
      try {
        database.exec("PRAGMA journal_mode = WAL");
        if (isNew) database.exec("CREATE TABLE counter (last INTEGER NOT NULL); INSERT INTO counter VALUES (0)");
        return database.prepare("UPDATE counter SET last = last + 1 RETURNING last").get()["last"] as number;
      } finally {
        database.close();
      }
    },
    end: () => {},
  });
}
