/** An answer as a command reads it whole: no more of it than a coordinator can have to say, whoever it is that answers. */
import { boundedText } from "@callnumber/client";

/**
 * The largest pages: 500 leases, of 3,400 bytes each where all that holders may say is as long as it may be, are 1.7 MB. The list of
 * namespaces has no such limit: this holds four thousand with the longest labels there are.
 */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Of a refusal: it ends at the terminal. */
const REFUSAL_BYTES_MAX = 65_536;
/**
 * Members of its objects and arrays, all together: some 17,000 of a page of leases, a hundred thousand of four thousand namespaces. The
 * schemas tell every fault that they find, and nine for three bytes are soon more than the memory has.
 */
const MEMBER_COUNT_MAX = 131_072;

/** What was answered as JSON, undefined for anything else; and whether it was more than is read. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly isTooMuch: boolean;
}

/** Rejects as the body of the response does. */
export async function boundedAnswer(response: Response): Promise<Answer> {
  const { status } = response;
  const text = await boundedText(response, status === 200 ? ANSWER_BYTES_MAX : REFUSAL_BYTES_MAX);
  const body = text === undefined ? undefined : parseJson(text);
  const isTooMuch = text === undefined || hasTooManyMembers(body);
  return { status, body: isTooMuch ? undefined : body, isTooMuch };
}

function hasTooManyMembers(value: unknown): boolean {
  const waiting = [value];
  for (let count = 0; waiting.length > 0; ) {
    const next = waiting.pop();
    if (typeof next !== "object" || next === null) continue;
    const members: unknown[] = Object.values(next);
    count += members.length;
    if (count > MEMBER_COUNT_MAX) return true;
    for (const member of members) waiting.push(member);
  }
  return false;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
