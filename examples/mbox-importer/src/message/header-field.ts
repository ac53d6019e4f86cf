/** How a line of a header begins. Knows nothing of mailboxes, nor of what fields mean. */

/** RFC 5322: a field's name is printable US-ASCII without a colon. Blanks before the colon are obsolete, and common. */
const FIELD = /^[\x21-\x39\x3b-\x7e]+[ \t]*:/;
/** Longer names exist only where something is not a header. */
const FIELD_NAME_LENGTH_MAX = 1000;

export function beginsWithHeaderField(bytes: Buffer): boolean {
  return FIELD.test(bytes.toString("latin1", 0, FIELD_NAME_LENGTH_MAX));
}

/** A line that goes on with the field before it. */
export function isFoldedLine(bytes: Buffer): boolean {
  return bytes[0] === 0x20 || bytes[0] === 0x09;
}
