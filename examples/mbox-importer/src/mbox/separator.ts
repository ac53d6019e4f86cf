/**
 * Which line of an mbox begins a message, as far as the line itself can tell. What stands around it is the splitter's affair.
 */
import type { Line } from "./line-reader.js";

const FROM_ = Buffer.from("From ");

/**
 * A time, then a four-digit year, at the end of the line; between and behind them what real mail programs write there:
 * zones as `+0200`, `EST` or `MET DST`, and the `remote from host` of UUCP.
 */
const TIME_AND_YEAR =
  /\d{1,2}:\d{2}(?::\d{2})?(?: +(?:[+-]\d{4}|[A-Z][A-Za-z]{1,4})){0,2} +\d{4}(?: +(?:[+-]\d{4}|[A-Z][A-Za-z]{1,4}))?(?: +remote from \S+)?\s*$/;

/**
 * Whether the line begins with `From ` and ends in a time and a year. Text that happens to begin with `From ` does not:
 * of 1,260 such lines in a year of a public list, one was text.
 */
export function isSeparator(line: Line): boolean {
  if (!startsWithFrom(line.head) || line.endsIn === "nul" || line.end - line.offset > line.head.length) return false;
  return TIME_AND_YEAR.test(line.head.toString("latin1"));
}

export function startsWithFrom(bytes: Buffer): boolean {
  return (
    bytes.length >= FROM_.length &&
    bytes[0] === FROM_[0] &&
    bytes.compare(FROM_, 0, FROM_.length, 0, FROM_.length) === 0
  );
}
