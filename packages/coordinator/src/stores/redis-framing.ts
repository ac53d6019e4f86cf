/**
 * Whether what a server sends is the Redis protocol (RESP2 and 3), told before the Redis client reads it. The client (ioredis 6.0.0) believes
 * whatever stands where a length should: `$*` is a text of -6 bytes to it, and it reads the same ten bytes for ever, with the whole
 * process; and it makes room at once for as many members as are announced. Knows no command.
 */

/** Of one answer: pages of the ledger are some MB, and a refusal may repeat a field that somebody wrote into the store. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Of one answer, in all its lists: room is made for the members of each when it is announced. */
const MEMBER_COUNT_MAX = 262_144;
/** Lists in lists: whoever asked reads four deep, and a stack has an end. */
const DEPTH_MAX = 16;

const NONE = Buffer.alloc(0);
const LINE_FEED = 0x0a;
const END_OF_LINE = "\r\n";

/** What stands behind the first character of a line, where it is no number of things that follow. */
const LINES: Readonly<Record<string, RegExp>> = {
  "+": /^[^\r\n]*$/,
  "-": /^[^\r\n]*$/,
  ",": /^(?:[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf)|-?nan)$/,
  "(": /^[+-]?\d+$/,
  ":": /^[+-]?\d{1,19}$/,
  "#": /^[tf]$/,
  _: /^$/,
};
/** Texts: the least that their bytes may be. Behind the format of the last one stands a colon. */
const TEXTS: Readonly<Record<string, number>> = { $: 0, "!": 0, "=": 4 };
/** Lists: how many values are a member. */
const LISTS: Readonly<Record<string, number>> = { "*": 1, "~": 1, "%": 2 };
/**
 * A message that answers nothing. Nobody here subscribes or tracks, and the client subscribes by itself to what such a message names, at
 * its next connection; when that is refused, the refusal is nobody's and ends the process.
 */
const PUSH = ">";
/** RESP2 says nothing in this way. */
const NOTHING = new Set(["$-1", "*-1"]);

/** Says what is wrong, and none of what was sent: a server may repeat a password. */
export class UnfitAnswer extends Error {
  override readonly name = "UnfitAnswer";
}

function notRedis(what: string): UnfitAnswer {
  return new UnfitAnswer(`what answers there does not speak the Redis protocol: ${what}`);
}

function tooMuch(what: string): UnfitAnswer {
  return new UnfitAnswer(`it answers with more than is read: ${what}`);
}

/** One connection's. */
export class RedisFraming {
  /** Room for a line that has no end yet, and how much of it has come: what half of one means is not seen before the other half. */
  #begunLine: Buffer = NONE;
  #begunLineBytes = 0;
  /** Of each list that has not ended, the outermost first: how many members have not begun. */
  readonly #dueCounts: number[] = [];
  /** Of a text, those still to come; behind it stands an end of line. */
  #textBytes = 0;
  #isBehindText = false;
  #memberCount = 0;
  #answerBytes = 0;

  /** What may be read by now, of the bytes that came. @throws UnfitAnswer: nothing more may be read. */
  passed(cameNow: Buffer): Buffer {
    if (this.#textBytes === 0 && !cameNow.includes(LINE_FEED)) return this.#held(cameNow);
    const bytes = this.#withBegunLine(cameNow);
    let at = 0;
    while (at < bytes.length) {
      const end = this.#textBytes > 0 ? this.#textEnd(at, bytes.length) : this.#lineEnd(bytes, at);
      if (end === at) break;
      this.#answerBytes += end - at;
      if (this.#isBetweenAnswers) this.#answerBytes = this.#memberCount = 0;
      this.#mustEnd();
      at = end;
    }
    if (at < bytes.length) this.#held(bytes.subarray(at));
    return bytes.subarray(0, at);
  }

  /** Nothing of them may be read yet. */
  #held(bytes: Buffer): Buffer {
    const begun = this.#begunLineBytes;
    this.#begunLineBytes += bytes.length;
    this.#mustEnd();
    if (this.#begunLine.length < this.#begunLineBytes) {
      // Twice as much: a line that comes byte by byte is not copied with each of them.
      const larger = Buffer.allocUnsafe(Math.max(this.#begunLineBytes, 2 * begun));
      this.#begunLine.copy(larger, 0, 0, begun);
      this.#begunLine = larger;
    }
    bytes.copy(this.#begunLine, begun);
    return NONE;
  }

  #withBegunLine(cameNow: Buffer): Buffer {
    if (this.#begunLineBytes === 0) return cameNow;
    const bytes = Buffer.concat([this.#begunLine.subarray(0, this.#begunLineBytes), cameNow]);
    this.#begunLine = NONE;
    this.#begunLineBytes = 0;
    return bytes;
  }

  #mustEnd(): void {
    const bytes = this.#answerBytes + this.#begunLineBytes + this.#textBytes;
    if (bytes > ANSWER_BYTES_MAX) throw tooMuch(`an answer of more than ${ANSWER_BYTES_MAX} bytes`);
  }

  get #isBetweenAnswers(): boolean {
    return this.#dueCounts.length === 0 && this.#textBytes === 0 && !this.#isBehindText;
  }

  #textEnd(at: number, end: number): number {
    const count = Math.min(this.#textBytes, end - at);
    this.#textBytes -= count;
    return at + count;
  }

  /** Where it began when it has none yet. */
  #lineEnd(bytes: Buffer, at: number): number {
    const feed = bytes.indexOf(LINE_FEED, at);
    if (feed < 0) return at;
    this.#readLine(bytes.toString("latin1", at, feed + 1));
    return feed + 1;
  }

  #readLine(line: string): void {
    if (!line.endsWith(END_OF_LINE)) throw notRedis("a line ends in another way");
    if (this.#isBehindText) {
      if (line !== END_OF_LINE) throw notRedis("a text is longer than was said");
      this.#isBehindText = false;
    } else this.#beginValue(line.slice(0, -END_OF_LINE.length));
    if (!this.#isBehindText) this.#endLists();
  }

  #endLists(): void {
    while (this.#dueCounts.at(-1) === 0) this.#dueCounts.pop();
  }

  #beginValue(line: string): void {
    const dueCount = this.#dueCounts.pop();
    if (dueCount !== undefined) this.#dueCounts.push(dueCount - 1);
    if (NOTHING.has(line)) return;
    const type = line.charAt(0);
    const rest = line.slice(1);
    if (Object.hasOwn(LINES, type)) {
      if (!LINES[type]?.test(rest)) throw notRedis("a value is none of its type");
      return;
    }
    if (type === PUSH) throw notRedis("a message came that nobody had asked for");
    const isText = Object.hasOwn(TEXTS, type);
    if (!isText && !Object.hasOwn(LISTS, type)) throw notRedis("a value has no type");
    const length = /^\d{1,10}$/.test(rest) ? Number(rest) : Number.NaN;
    if (isText) this.#beginText(length, TEXTS[type] as number);
    else this.#beginList(length * (LISTS[type] as number));
  }

  #beginText(length: number, least: number): void {
    if (!(length >= least)) throw notRedis("the length of a text is none");
    this.#textBytes = length;
    this.#isBehindText = true;
  }

  #beginList(count: number): void {
    if (Number.isNaN(count)) throw notRedis("the length of a list is none");
    this.#memberCount += count;
    if (this.#memberCount > MEMBER_COUNT_MAX) throw tooMuch(`an answer of more than ${MEMBER_COUNT_MAX} members`);
    if (this.#dueCounts.length === DEPTH_MAX) throw tooMuch(`lists that lie more than ${DEPTH_MAX} deep in each other`);
    this.#dueCounts.push(count);
  }
}
