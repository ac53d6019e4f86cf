/**
 * Redis's protocol (RESP2 and RESP3) as far as tests need it: one command written, one message read.
 * Knows nothing of sockets: it is given bytes and says where a message ends.
 */

export type RespValue = string | number | boolean | null | readonly RespValue[] | RespRefusal;

/** An error that Redis answered, as a value: inside of an array it is one of several answers. */
export class RespRefusal extends Error {}

interface RespMessage {
  /** The type's first character as Redis sends it: `>` marks a push, which answers no command. */
  readonly type: string;
  readonly value: RespValue;
  /** The offset of the first byte after the message. */
  readonly end: number;
}

const LINE_END = "\r\n";
type Reader = (head: string, bytes: Buffer, at: number) => Omit<RespMessage, "type"> | undefined;

/** What follows the first line of a message, by its type. `at` is the offset after that line. */
const READERS: Readonly<Record<string, Reader>> = {
  "+": line((text) => text),
  "-": line((text) => new RespRefusal(text)),
  ":": line(Number),
  ",": line(Number),
  "(": line((text) => text),
  "#": line((text) => text === "t"),
  _: line(() => null),
  $: block,
  "=": block,
  "!": (head, bytes, at) => {
    const message = block(head, bytes, at);
    return message && { value: new RespRefusal(String(message.value)), end: message.end };
  },
  "*": list(1),
  "~": list(1),
  ">": list(1),
  // A map's head counts pairs.
  "%": list(2),
};

/**
 * The message that begins at `start`, or undefined when its end has not arrived yet. Maps come as flat lists, as in RESP2.
 * @throws Error for bytes that begin no message.
 */
function readMessage(bytes: Buffer, start = 0): RespMessage | undefined {
  if (start >= bytes.length) return undefined;
  const type = String.fromCharCode(bytes[start] as number);
  const read = READERS[type];
  if (!read) throw new Error(`no message of Redis begins with ${JSON.stringify(type)}`);
  const lineEnd = bytes.indexOf(LINE_END, start);
  if (lineEnd < 0) return undefined;
  const message = read(bytes.toString("utf8", start + 1, lineEnd), bytes, lineEnd + LINE_END.length);
  return message && { type, ...message };
}

/** Cuts a stream of bytes into messages: returns those that end in a chunk, and the bytes of each. */
export function messageReader(): (chunk: Buffer) => Generator<RespMessage & { readonly bytes: Buffer }> {
  let rest: Buffer = Buffer.alloc(0);
  return function* (chunk) {
    rest = Buffer.concat([rest, chunk]);
    for (let message = readMessage(rest); message; message = readMessage(rest)) {
      const bytes = rest.subarray(0, message.end);
      rest = rest.subarray(message.end);
      yield { ...message, bytes };
    }
  };
}

export function writeCommand(words: readonly (string | number)[]): string {
  const blocks = words.map((word) => `$${Buffer.byteLength(`${word}`)}${LINE_END}${word}${LINE_END}`);
  return `*${words.length}${LINE_END}${blocks.join("")}`;
}

function line(read: (text: string) => RespValue): Reader {
  return (head, _bytes, at) => ({ value: read(head), end: at });
}

function block(head: string, bytes: Buffer, at: number): Omit<RespMessage, "type"> | undefined {
  const length = Number(head);
  if (length < 0) return { value: null, end: at };
  const end = at + length + LINE_END.length;
  return end > bytes.length ? undefined : { value: bytes.toString("utf8", at, at + length), end };
}

function list(messagesPerCount: number): Reader {
  return (head, bytes, at) => {
    const count = Number(head) * messagesPerCount;
    if (count < 0) return { value: null, end: at };
    const values: RespValue[] = [];
    let end = at;
    for (let index = 0; index < count; index++) {
      const message = readMessage(bytes, end);
      if (!message) return undefined;
      values.push(message.value);
      end = message.end;
    }
    return { value: values, end };
  };
}
