/**
 * A range of whole messages: what the parent hands to a process, as positions only. Small enough for a message between
 * processes and for one transaction.
 */
import type { MaildirMessage } from "./maildir.js";
import type { MboxPart } from "./mbox.js";

export type Numbered<T> = T & {
  /** Position in its source, from 1; 0 for text before the first separator. */
  readonly number: number;
};

export type Range =
  | { readonly kind: "mbox"; readonly path: string; readonly parts: readonly Numbered<MboxPart>[] }
  | { readonly kind: "maildir"; readonly path: string; readonly messages: readonly Numbered<MaildirMessage>[] };

/** Something that has no row in the archive, or a row with a remark: named in the report. */
export interface Problem {
  readonly source: string;
  readonly number: number;
  readonly byteOffset: number;
  readonly reason: string;
  readonly stored: boolean;
}

/** How many bytes of its source a range covers: for progress. */
export function bytesOf(range: Range): number {
  if (range.kind === "maildir") return range.messages.reduce((sum, { bytes }) => sum + bytes, 0);
  return range.parts.reduce((sum, { offset, end }) => sum + end - offset, 0);
}
