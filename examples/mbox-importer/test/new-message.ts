/** A message for the archive, of which a test says only what it is about. */
import { createHash } from "node:crypto";
import type { NewMessage } from "../src/archive/archive.js";

const NO_FIELDS = {
  messageId: null,
  subject: null,
  from: null,
  date: null,
  dateHeader: null,
  fromLine: null,
  problem: null,
};

export function message(text: string, fields: Partial<NewMessage> = {}): NewMessage {
  const raw = Buffer.from(text);
  const contentHash = createHash("sha256").update(raw).digest();
  return { ...NO_FIELDS, source: "letters.mbox", number: 1, byteOffset: 0, raw, contentHash, ...fields };
}
