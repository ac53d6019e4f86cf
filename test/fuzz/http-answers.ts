/** The answers in what a server sent on one connection, read as strictly as HTTP/1.1 is written. */
import assert from "node:assert/strict";

export interface HttpAnswer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

const BLANK_LINE = "\r\n\r\n";

/** @throws for bytes that are no answers, one behind the other; the last one may be cut off only where it streams for ever. */
export function answersIn(bytes: Buffer, request: Buffer): readonly HttpAnswer[] {
  // What was asked is not known for sure any more: an answer to HEAD looks cut off.
  const mayHaveNoBody = request.includes("HEAD");
  const answers: HttpAnswer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { end, ...answer } = answerAt(bytes, at, mayHaveNoBody);
    answers.push(answer);
    at = end;
  }
  return answers;
}

function answerAt(bytes: Buffer, at: number, mayHaveNoBody: boolean): HttpAnswer & { readonly end: number } {
  const headEnd = bytes.indexOf(BLANK_LINE, at);
  assert(headEnd >= 0, `the head of an answer has no end: ${JSON.stringify(bytes.toString("latin1", at, at + 200))}`);
  const [first = "", ...lines] = bytes.toString("latin1", at, headEnd).split("\r\n");
  const [, digits = ""] =
    /^HTTP\/1\.1 (\d{3}) [ -~]*$/.exec(first) ?? assert.fail(`no status line: ${JSON.stringify(first)}`);
  const headers = new Map(
    lines.map((line) => {
      const [, name = "", value = ""] =
        /^([!-9;-~]+): ([ -~]*)$/.exec(line) ?? assert.fail(`no header: ${JSON.stringify(line)}`);
      return [name.toLowerCase(), value] as const;
    }),
  );
  assert.equal(headers.size, lines.length, "a header stands twice");
  const status = Number(digits);
  const bodyAt = headEnd + BLANK_LINE.length;
  const isNextAnswer = bytes.length === bodyAt || bytes.subarray(bodyAt, bodyAt + 5).equals(Buffer.from("HTTP/"));
  if (status < 200 || status === 204 || (mayHaveNoBody && isNextAnswer))
    return { status, headers, body: "", end: bodyAt };
  if (headers.get("transfer-encoding") === "chunked") return { status, headers, ...chunkedBody(bytes, bodyAt) };
  const length = headers.get("content-length");
  if (length === undefined) {
    // To a client of HTTP/1.0 the end of the connection is the end of a stream.
    assert.equal(headers.get("connection"), "close", "an answer has no length");
    return { status, headers, body: bytes.toString("utf8", bodyAt), end: bytes.length };
  }
  const end = bodyAt + Number(length);
  assert(end <= bytes.length, "an answer is cut off");
  return { status, headers, body: bytes.toString("utf8", bodyAt, end), end };
}

function chunkedBody(bytes: Buffer, bodyAt: number): { readonly body: string; readonly end: number } {
  const pieces: Buffer[] = [];
  for (let at = bodyAt; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    // Broken off behind a chunk: by the refusal of what came behind its request and was no HTTP.
    if (bytes.subarray(at, at + 5).equals(Buffer.from("HTTP/")))
      return { body: Buffer.concat(pieces).toString("utf8"), end: at };
    // A stream of events, whose connection this side has ended.
    if (lineEnd < 0) return { body: Buffer.concat(pieces).toString("utf8"), end: bytes.length };
    const length = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    assert(Number.isInteger(length), "a chunk has no length");
    const begin = lineEnd + 2;
    pieces.push(bytes.subarray(begin, begin + length));
    at = begin + length + 2;
    if (length === 0) return { body: Buffer.concat(pieces).toString("utf8"), end: at };
  }
}
