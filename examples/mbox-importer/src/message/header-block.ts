/**
 * The header of a message as bytes: what is wrong with it, and its 8-bit text made readable. Knows nothing of what fields mean.
 */
import { isUtf8 } from "node:buffer";
import { beginsWithHeaderField, isFoldedLine } from "./header-field.js";

const BLANK_LINE = /^\r?\n/;
const SHOWN_BYTES_MAX = 60;
/** Where a header without an end is cut, in bytes: what lies further along is read by nobody. A parser of addresses needs 2 s for as many. */
export const HEADER_BYTES_MAX = 512 * 1024;

/** Whether the header is not longer than what is read of it. */
export function hasWholeHeader(raw: Buffer): boolean {
  return raw.length <= HEADER_BYTES_MAX || headerBlockOf(raw).length < HEADER_BYTES_MAX;
}

/** The header alone. */
export function headerBlockOf(raw: Buffer): Buffer {
  let length = 0;
  for (const line of headerLines(raw)) length += line.length;
  return raw.subarray(0, Math.min(length, HEADER_BYTES_MAX));
}

/** What is wrong with the header, in words, or null. A message with a broken header is still a message. */
export function headerProblem(raw: Buffer): string | null {
  if (raw.length === 0) return "the message is empty";
  let number = 0;
  for (const line of headerLines(raw)) {
    number++;
    const belongs = beginsWithHeaderField(line) || (number > 1 && isFoldedLine(line));
    if (!belongs) return `line ${number} of the header is no header field: ${shown(line)}`;
  }
  return number === 0 ? "the message has no header" : null;
}

/**
 * The message with those lines of its header that are not UTF-8 turned into UTF-8, read as windows-1252: what old mail
 * programs wrote. The same object when all are UTF-8. For parsing only.
 */
export function withReadableHeader(raw: Buffer): Buffer {
  let changed = false;
  let end = 0;
  const lines: Buffer[] = [];
  for (const line of headerLines(raw)) {
    end += line.length;
    const readable = isUtf8(line) ? line : Buffer.from(windows1252.decode(line));
    changed ||= readable !== line;
    lines.push(readable);
  }
  return changed ? Buffer.concat([...lines, raw.subarray(end)]) : raw;
}

const windows1252 = new TextDecoder("windows-1252");

/** The lines up to the first blank one, with their ends. */
function* headerLines(raw: Buffer): Generator<Buffer, void> {
  for (let start = 0; start < Math.min(raw.length, HEADER_BYTES_MAX); ) {
    const newline = raw.indexOf(0x0a, start);
    const stop = newline < 0 ? raw.length : newline + 1;
    const line = raw.subarray(start, stop);
    if (line.length <= 2 && BLANK_LINE.test(line.toString("latin1"))) return;
    yield line;
    start = stop;
  }
}

function shown(line: Buffer): string {
  const text = line.toString("latin1", 0, SHOWN_BYTES_MAX).trimEnd();
  return JSON.stringify(line.length > SHOWN_BYTES_MAX ? `${text}…` : text);
}
