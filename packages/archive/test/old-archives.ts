/** Archives whose messages a test gives, and the files that an older archive left behind. */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import { onTestFinished } from "vitest";
import { openDatabase } from "../src/archive/schema.js";
import { temporaryDirectory } from "./importing.js";

/** A message that a test gives, from its second field on as far as it matters. */
export interface Stored {
  readonly callNumber: string;
  readonly messageId?: string | null;
  readonly inReplyTo?: string;
  readonly thread?: string;
  readonly list?: string;
  readonly source?: string;
  readonly number?: number;
}

export function archiveOf(messages: readonly Stored[], path = ":memory:"): Database {
  const database = openDatabase(path);
  onTestFinished(() => database.close());
  const insert =
    database.prepare(`insert into messages (call_number, message_id, in_reply_to, thread, list, is_list_given, raw,
    source, number, byte_offset, content_hash, message_hash, body_hash) values (?, ?, ?, ?, ?, 0, x'', ?, ?, ?, :hash, :hash, :hash)`);
  for (const [index, message] of messages.entries()) {
    const { callNumber, messageId = null, inReplyTo = null, list = null } = message;
    const { thread = messageId ?? callNumber, source = "garden.mbox", number = index + 1 } = message;
    const hash = createHash("sha256").update(callNumber).digest();
    insert.run({ hash }, callNumber, messageId, inReplyTo, thread, list, source, number, index);
  }
  return database;
}

export function addCopy(
  database: Database,
  { callNumber, source, number }: Required<Pick<Stored, "callNumber" | "source" | "number">>,
): void {
  const query =
    "insert into copies select ?, ?, 0, content_hash, call_number, 'bytes' from messages where call_number = ?";
  database.prepare(query).run(source, number, callNumber);
}

/** Writes files into a directory of their own, and returns it. */
export async function filesOf(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

/** As Pipermail writes it: the mailto of the author has the Message-ID. */
export function pipermailPage(messageId: string): string {
  const query = `Subject=Re%3A%20Plums&In-Reply-To=${encodeURIComponent(messageId)}`;
  return `<HTML><HEAD><TITLE>Plums</TITLE></HEAD><BODY><A HREF="mailto:garden%40example.org?${query}">mei at example.org</A></BODY></HTML>`;
}

/** As MHonArc writes it, with a hyphen that could end the comment. */
export function mhonarcPage(messageId: string): string {
  const id = messageId.slice(1, -1).replaceAll("-", "&#45;");
  return `<!-- MHonArc v2.6.19 -->\n<!--X-Subject: Plums -->\n<!--X-Message-Id: ${id} -->\n<p>Plums are ripe.</p>`;
}
