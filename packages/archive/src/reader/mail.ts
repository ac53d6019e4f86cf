/**
 * Reads the text and the attachments of a message. Whatever it contains, nothing of it is more than text and bytes afterwards; and it is
 * bounded: of the header only the fields that say how to read the body, parts, nesting, and what is shown of them.
 */
import { type HtmlToTextOptions, htmlToText } from "html-to-text";
import PostalMime, { type Address, type Email } from "postal-mime";
import { visible, visibleLine } from "./text.js";

export interface Mail {
  readonly cc: string;
  /** Visible text of the body, from its HTML where it has nothing else. */
  readonly text: string;
  readonly isFromHtml: boolean;
  /** Whether there was more. */
  readonly isCut: boolean;
  readonly attachments: readonly AttachmentName[];
  readonly attachmentCount: number;
}

interface AttachmentName {
  readonly name: string;
  readonly type: string;
  readonly byteCount: number;
}

/** A larger message is not parsed. */
export const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;
const TEXT_LENGTH_MAX = 256 * 1024;
const LINES_MAX = 5_000;
const ATTACHMENTS_MAX = 100;
const HEADER_BYTES_MAX = 512 * 1024;
const FIELD_BYTES_MAX = 8 * 1024;
/** Lines that may end a part. A mail of nothing but empty parts takes minutes. */
const PART_ENDS_MAX = 20_000;
const LIMITS = { maxNestingDepth: 64, maxHeadersSize: 1024 * 1024, maxRfc822NestingDepth: 2 };

/** Links keep their address only where a reader can follow it; pictures have nothing to read. */
const AS_TEXT: HtmlToTextOptions = {
  wordwrap: false,
  limits: { maxInputLength: 1024 * 1024, maxDepth: 64, maxChildNodes: 10_000, ellipsis: "…" },
  selectors: [
    { selector: "img", format: "skip" },
    {
      selector: "a",
      options: {
        hideLinkHrefIfSameAsText: true,
        noAnchorUrl: true,
        pathRewrite: (path: string) => (/^https?:\/\//i.test(path) ? path : ""),
      },
    },
    ...["h1", "h2", "h3", "h4", "h5", "h6"].map((selector) => ({ selector, options: { uppercase: false } })),
  ],
};

/** @throws Error where it can't be parsed. */
export async function readMail(raw: Buffer): Promise<Mail> {
  const email = await parse(raw);
  const plain = email.text ?? "";
  const isFromHtml = plain.trim() === "" && email.html !== undefined;
  const whole = visible(isFromHtml ? htmlToText(email.html ?? "", AS_TEXT) : plain);
  const lines = whole.slice(0, TEXT_LENGTH_MAX).split("\n", LINES_MAX + 1);
  return {
    cc: visibleLine(email.cc?.map(addressText).join(", ") ?? "", 1000),
    text: lines.slice(0, LINES_MAX).join("\n").trimEnd(),
    isFromHtml,
    isCut: whole.length > TEXT_LENGTH_MAX || lines.length > LINES_MAX,
    attachments: email.attachments.slice(0, ATTACHMENTS_MAX).map(({ filename, mimeType, content }, index) => ({
      name: safeName(filename, index),
      type: visibleLine(mimeType, 80),
      byteCount: content.byteLength,
    })),
    attachmentCount: email.attachments.length,
  };
}

/** Returns an attachment that `readMail` lists; undefined when there is none at `index`. */
export async function readAttachment(
  raw: Buffer,
  index: number,
): Promise<{ name: string; content: Uint8Array } | undefined> {
  const found = (await parse(raw)).attachments.slice(0, ATTACHMENTS_MAX)[index];
  return found && { name: safeName(found.filename, index), content: new Uint8Array(found.content) };
}

type ParsedEmail = Omit<Email, "attachments"> & {
  readonly attachments: readonly { filename: string | null; mimeType: string; content: ArrayBuffer }[];
};

/** Fields with their folded lines. All others are in the archive's columns, and an address list of 512 KiB takes seconds to parse. */
const FIELDS_OF_BODY = /^(?:content-[a-z-]{2,30}|mime-version|cc)[ \t]*:.*(?:\r?\n[ \t].*)*/gim;

async function parse(raw: Buffer): Promise<ParsedEmail> {
  const start = startOfBody(raw);
  const header = raw.toString("latin1", 0, Math.min(start, HEADER_BYTES_MAX));
  const fields = (header.match(FIELDS_OF_BODY) ?? []).map((field) => `${field.slice(0, FIELD_BYTES_MAX).trimEnd()}\n`);
  let partEnds = 0;
  for (let at = raw.indexOf("\n--"); at >= 0; at = raw.indexOf("\n--", at + 1)) partEnds++;
  if (partEnds > PART_ENDS_MAX) throw new Error(`its ${partEnds} parts are too many`);
  const message = Buffer.concat([Buffer.from(`${fields.join("")}\n`, "latin1"), raw.subarray(start)]);
  return (await PostalMime.parse(message, { ...LIMITS, attachmentEncoding: "arraybuffer" })) as ParsedEmail;
}

function startOfBody(raw: Buffer): number {
  for (let start = 0; start < raw.length; ) {
    const newline = raw.indexOf(0x0a, start);
    if (newline < 0) break;
    if (newline === start || (newline === start + 1 && raw[start] === 0x0d)) return newline + 1;
    start = newline + 1;
  }
  return raw.length;
}

function addressText({ name, address }: Address): string {
  return address === undefined || address === "" ? name : `${name} <${address}>`.trim();
}

/** A name without paths and without what Windows gives a meaning to. */
function safeName(name: string | null, index: number): string {
  const plain = visibleLine(name, 100).replace(/[/\\:"<>|?*%]+/g, "_");
  return plain.replace(/^[. ]+/, "") || `attachment-${index + 1}`;
}
