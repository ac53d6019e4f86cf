/**
 * Splits an mbox into its parts. Works on bytes as they stream by and returns only where each part is: memory stays
 * constant for files of any size. Knows nothing of what a message contains, except how a header begins.
 *
 * Invariant: the parts, from `offset` to `end`, follow each other without a gap from the file's first byte to its last.
 *
 * A message begins at a separator line that follows a blank line, the file's start or a hole of NUL bytes. Some programs
 * leave the blank line out: Pipermail does after each attachment that it removed, 161 times in a year of one list. So a
 * separator in the middle of text counts too when a header field follows it at once. So does a separator of a rare form
 * behind a blank line, and one without a date in a file that begins with one of the same form.
 *
 * In mboxcl2, text is not quoted: a length says where a message ends. It counts where it leads exactly to the next separator or to the
 * file's end, and only as long as the file has had one for each message. Else a letter could swallow those behind it.
 *
 * The blank line before the next separator, or at the file's end, belongs to the format and not to the message.
 */
import { beginsWithHeaderField } from "../message/parse-message.js";
import { type Line, LineReader, startsWithFrom } from "./line-reader.js";

/**
 * `message`: begins with a separator · `preamble`: text before the first separator · `unseparated`: the text of a file
 * without any separator · `blank`: blank lines or a byte order mark at the start of a file, which mean nothing.
 */
type MboxPartKind = "message" | "preamble" | "unseparated" | "blank";

/** Where a part is, in bytes from the start of the file. */
export interface MboxPart {
  readonly kind: MboxPartKind;
  readonly offset: number;
  /** Where its content begins: after the separator, for a message; else at `offset`. */
  readonly contentOffset: number;
  /** Where its content ends: before the blank line that belongs to the format. */
  readonly contentEnd: number;
  /** Where the next part begins. */
  readonly end: number;
}

/** What a file has shown of its form so far. A scan that begins in its middle needs it. */
export interface MboxForm {
  /** The form of the file's first line, where it is a separator without a date; null where it is not, undefined before it. */
  dateless?: string | null;
  /** Whether each message has had a Content-Length that leads exactly to its end. */
  hasLengths: boolean;
}

export interface SplitOptions {
  readonly form?: MboxForm;
  /** Where the first byte of the chunks is in the file: at the begin of a part. */
  readonly start?: number;
  /** Leaves out a last line without its end, since what it is depends on the rest. */
  readonly isGrowing?: boolean;
}

/** Yields the parts of an mbox: those that a chunk completes at once. The bytes may come in chunks of any size; the parts are the same. */
export async function* splitMbox(
  chunks: AsyncIterable<Buffer>,
  { start = 0, isGrowing = false, form = { hasLengths: true } }: SplitOptions = {},
): AsyncGenerator<readonly MboxPart[], void> {
  const splitter = new MboxSplitter(start, form);
  const reader = new LineReader(start, () => splitter.isInText);
  const joiner = new LengthJoiner(form);
  let parts: MboxPart[] = [];
  const join = (measured: Iterable<MeasuredPart>) => {
    for (const part of measured) parts.push(...joiner.push(part));
  };
  for await (const chunk of chunks) {
    for (const line of reader.push(chunk)) join(splitter.push(line));
    if (parts.length > 0) yield parts;
    parts = [];
  }
  if (!isGrowing) for (const line of reader.end()) join(splitter.push(line));
  join(splitter.end());
  yield [...parts, ...joiner.end()];
}

/** `lengthEnd`: where its Content-Length says that it ends. */
type MeasuredPart = { readonly part: MboxPart; readonly lengthEnd: number | undefined };

/** A length that leads nowhere keeps no more parts than this waiting. */
const HELD_PART_COUNT_MAX = 1000;

/** Makes one part of those that are one message by its length: some line of its text looks like a separator. */
class LengthJoiner {
  readonly #form: MboxForm;
  #held: MeasuredPart[] = [];
  #isExact = true;

  constructor(form: MboxForm) {
    this.#form = form;
  }

  *push(next: MeasuredPart): Generator<MboxPart, void> {
    // Only now: the last part of a file that grows may not have shown its end.
    if (!this.#isExact) this.#form.hasLengths = false;
    this.#held.push(next);
    const { kind, contentEnd, end } = next.part;
    const [{ part, lengthEnd }] = this.#held as [MeasuredPart];
    const mayGoOn = this.#form.hasLengths && lengthEnd !== undefined && lengthEnd > end;
    if (mayGoOn && this.#held.length < HELD_PART_COUNT_MAX) return;
    this.#isExact = kind === "blank" || lengthEnd === contentEnd || lengthEnd === end;
    if (this.#isExact && this.#held.length > 1) this.#held = [{ part: { ...part, contentEnd, end }, lengthEnd }];
    yield* this.end();
  }

  *end(): Generator<MboxPart, void> {
    for (const { part } of this.#held) yield part;
    this.#held = [];
  }
}

interface OpenPart {
  readonly kind: "message" | "text" | "blank";
  readonly offset: number;
  readonly contentOffset: number;
  /** What its header says so far. */
  length?: number;
  /** Known at the end of its header. */
  lengthEnd?: number | undefined;
  isHeaderRead?: boolean;
}

const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = Buffer.from("\ufeff");

class MboxSplitter {
  #open: OpenPart | undefined;
  /** Where the lines seen so far end. */
  #end: number;
  /** Length of the last line when it was blank, else 0. */
  #blankLength = 0;
  #separatorMayFollow = true;
  /** The next line decides whether it counts. */
  #candidate: { readonly separator: Line; readonly blankLength: number } | undefined;
  #hasSeparator = false;
  readonly #form: MboxForm;

  constructor(start: number, form: MboxForm) {
    this.#end = start;
    this.#form = form;
  }

  /** Whether nothing but a separator, and the line before it, can matter now. */
  get isInText(): boolean {
    return this.#open?.isHeaderRead === true && this.#candidate === undefined;
  }

  *push(given: Line): Generator<MeasuredPart, void> {
    let line = given;
    if (line.offset === 0 && line.head.indexOf(BYTE_ORDER_MARK) === 0) {
      this.#open = { kind: "blank", offset: 0, contentOffset: 0 };
      line = { ...line, offset: BYTE_ORDER_MARK.length, head: line.head.subarray(BYTE_ORDER_MARK.length) };
    }
    if (this.#candidate !== undefined && beginsWithHeaderField(line.head)) {
      yield* this.#begin(this.#candidate.separator, this.#candidate.blankLength);
    }
    this.#candidate = undefined;
    const blank = isBlank(line);
    if (!blank && this.#form.dateless === undefined) this.#form.dateless = datelessForm(line);
    const isUsual = isSeparator(line, USUAL_SEPARATOR);
    if (isUsual && this.#separatorMayFollow) {
      yield* this.#begin(line, this.#blankLength);
    } else {
      if (this.#open === undefined || (this.#open.kind === "blank" && !blank)) {
        yield* this.#close(line.offset, 0);
        this.#open = { kind: blank ? "blank" : "text", offset: line.offset, contentOffset: line.offset };
      }
      const isRare = this.#separatorMayFollow && isSeparator(line, RARE_SEPARATOR);
      if (isUsual || isRare || (this.#form.dateless != null && datelessForm(line) === this.#form.dateless)) {
        this.#candidate = { separator: line, blankLength: this.#blankLength };
      }
      readLength(this.#open, line, blank);
    }
    this.#end = line.end;
    this.#blankLength = blank ? line.end - line.offset : 0;
    this.#separatorMayFollow = blank || line.endsIn === "nul";
  }

  *end(): Generator<MeasuredPart, void> {
    yield* this.#close(this.#end, this.#blankLength);
  }

  *#begin(separator: Line, blankLength: number): Generator<MeasuredPart, void> {
    this.#hasSeparator = true;
    yield* this.#close(separator.offset, blankLength);
    this.#open = { kind: "message", offset: separator.offset, contentOffset: separator.end };
  }

  *#close(end: number, blankLength: number): Generator<MeasuredPart, void> {
    // A candidate that counts has opened a text at the same place.
    if (this.#open === undefined || this.#open.offset === end) return;
    const { kind, offset, contentOffset, lengthEnd } = this.#open;
    const textKind = this.#hasSeparator ? "preamble" : "unseparated";
    const place = { offset, contentOffset, contentEnd: kind === "message" ? end - blankLength : end, end };
    yield { part: { kind: kind === "text" ? textKind : kind, ...place }, lengthEnd };
  }
}

const CONTENT_LENGTH = /^content-length:[ \t]*(\d{1,15})\s*$/i;

function readLength(open: OpenPart | undefined, { head, end }: Line, isBlank: boolean): void {
  if (open?.kind !== "message" || open.isHeaderRead === true) return;
  if (isBlank) {
    open.isHeaderRead = true;
    if (open.length !== undefined) open.lengthEnd = end + open.length;
  } else if (head[0] === 0x43 || head[0] === 0x63) {
    const length = CONTENT_LENGTH.exec(head.toString("latin1"))?.[1];
    if (length !== undefined) open.length = Number(length);
  }
}

function isBlank({ head, endsIn }: Line): boolean {
  return endsIn === "newline" && (head.length === 1 || (head.length === 2 && head[0] === CARRIAGE_RETURN));
}

/** Up to two of what real mail programs write: `+0200`, `EST`, `UTC+0200`, `MET DST`, `-0800 (PST)`. */
const ZONES = String.raw`(?: *(?:[+-]\d{2}:?\d{2}|\(?[A-Z][A-Za-z]{0,4}(?:[+-]\d{4})?\)?)){0,2}`;

/** A time, then a four-digit year, at the end of the line; perhaps with the `remote from host` of UUCP. */
const USUAL_SEPARATOR = new RegExp(
  String.raw`\d{1,2}:\d{2}(?::\d{2})?${ZONES} +\d{4}${ZONES}(?: +remote from \S+)?\s*$`,
);

/** Times that text may have, too: `Fri, 5 Mar 93 14:20:00 +0100`, `Fri Mar  5 14.20.00 93` and `1993-03-05T14:20:00Z`. */
const RARE_DATES = [
  String.raw`[A-Z][a-z]{2},? +\d{1,2}[ -][A-Z][a-z]{2}[ -](?:\d{2}){1,2} TIME`,
  String.raw`[A-Z][a-z]{2} +[A-Z][a-z]{2} +\d{1,2} +TIME +(?:\d{2}){1,2}`,
  String.raw`\d{4}-\d{2}-\d{2}[T ]TIME`,
].map((date) => date.replace("TIME", String.raw`\d{1,2}[:.]\d{2}(?:[:.]\d{2})?${ZONES}`));

/** A sender, then such a date. */
const RARE_SEPARATOR = new RegExp(String.raw`^From +\S.* (?:${RARE_DATES.join("|")})\s*$`);

/** `From -3831648075992104022` of the great Usenet archives, `From - ` of old Netscapes, `From `. */
const DATELESS_SEPARATOR = /^From (-?\d+|-|)\s*$/;

/** What a separator without a date has instead of one; null for any other line. */
function datelessForm({ head, end, offset }: Line): string | null {
  if (!startsWithFrom(head) || end - offset > head.length) return null;
  return DATELESS_SEPARATOR.exec(head.toString("latin1"))?.[1]?.replace(/-?\d+/, "number") ?? null;
}

/** Whether a line, with its end, separates messages in any mbox. */
export function isUsualSeparator(line: Buffer): boolean {
  return startsWithFrom(line) && USUAL_SEPARATOR.test(line.toString("latin1"));
}

/** In other files, a line that begins with `From ` and has no date is text: of 1,260 such lines in a year of a public list, one was. */
function isSeparator(line: Line, form: RegExp): boolean {
  if (!startsWithFrom(line.head) || line.endsIn === "nul" || line.end - line.offset > line.head.length) return false;
  return form.test(line.head.toString("latin1"));
}
