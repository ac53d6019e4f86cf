/** One bad input of the table: what is sent, and what may come of it. */
import { randomBytes } from "node:crypto";
import { type Bytes, type Place, type Received, type SendOptions, sendBytes } from "./raw-client.js";

/** Stands in every Authorization of the rows, and must stand in no log. */
export const SECRET = "SECRET-0123456789abcdef";

/** Whom the rows are sent to. */
export interface Target extends Place {
  /** Whether it speaks HTTPS. */
  readonly isEncrypted?: boolean;
  /** A token that may lease, and nothing else. */
  readonly leaseToken: string;
  /** A token that may look and change labels, and takes no run. */
  readonly operatorToken: string;
  /** A token that may lease in another namespace only. */
  readonly foreignToken: string;
  /** How many sockets and repeats the greedy rows take: 1 for all that the table is about. */
  readonly share: number;
}

/** What well-formed requests name as their host; where nobody is asked for a token, it must be allowed. */
export const REQUEST_HOST = "coordinator";

/** For a coordinator that asks nobody for a token: what stands in `Authorization` is not looked at. */
export const NOBODY_IS_ASKED = { leaseToken: "any", operatorToken: "any", foreignToken: "any" } as const;

export interface Row {
  readonly family: string;
  /** What is sent, in words. */
  readonly input: string;
  /** What is answered, in the order of the answers; empty when the connection is cut without a word. */
  readonly statuses: readonly number[];
  /** Runs that good requests among the bad ones get. Default none. */
  readonly grantedRuns?: number;
  /** The answer is a word about what was asked, `malformed` for one: asking was no fault. Default false. */
  readonly isAnswered?: boolean;
  /** Takes long, by its nature: not repeated. */
  readonly isOnce?: boolean;
  readonly act: (target: Target) => Promise<Received>;
}

export const LEASES = leasesOf("main");

export function leasesOf(namespace: string): string {
  return `/v1/namespaces/${namespace}/leases`;
}

export interface RequestParts {
  readonly method?: string;
  readonly path?: string;
  readonly version?: string;
  /** Instead of the usual ones: null leaves one out. */
  readonly host?: string | null;
  readonly type?: string | null;
  readonly length?: number | null;
  readonly authorization?: string | null;
  /** Whole lines, after the others. */
  readonly lines?: readonly string[];
  readonly body?: string | Buffer;
  readonly keepsAlive?: boolean;
}

/** A request that is right but for what is said. Without a body it is a GET. */
export function request(target: Target, parts: RequestParts = {}): Buffer {
  const { body, method = body === undefined ? "GET" : "POST", path = LEASES, version = "HTTP/1.1" } = parts;
  const bytes = body === undefined ? undefined : Buffer.from(body as string);
  const { host = REQUEST_HOST, type = bytes && "application/json", length = bytes?.length } = parts;
  const { authorization = `Bearer ${tokenFor(target, method, path)}` } = parts;
  const lines = [`${method} ${path} ${version}`];
  if (host !== null) lines.push(`Host: ${host}`);
  if (authorization !== null) lines.push(`Authorization: ${authorization}`);
  if (type !== null && type !== undefined) lines.push(`Content-Type: ${type}`);
  if (length !== null && length !== undefined) lines.push(`Content-Length: ${length}`);
  if (!parts.keepsAlive) lines.push("Connection: close");
  lines.push(...(parts.lines ?? []));
  // A char is a byte: rows put any byte into a header.
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), bytes ?? Buffer.alloc(0)]);
}

/** The one that is good for the route: nothing is refused for want of a right where something else is wrong. */
function tokenFor({ leaseToken, operatorToken }: Target, method: string, path: string): string {
  return method === "POST" && !path.includes("/labels") ? leaseToken : operatorToken;
}

/** A request for one run as an importer sends it, with something changed. */
export function leaseBody(changed: object = {}): string {
  return JSON.stringify({ ...rightLease(), ...changed });
}

export function rightLease() {
  return {
    runCount: 1,
    nonce: randomBytes(16).toString("hex"),
    holder: { name: "hostile", host: "elsewhere", pid: 666, labels: {} },
    lastRun: null,
    receipt: null,
    sentAtMs: Date.now(),
  };
}

/** A row that sends one request and reads to the end. */
export function rowOf(
  family: string,
  input: string,
  status: number | readonly number[],
  bytesFor: (target: Target) => string | Buffer | Bytes,
  more: Partial<Row> & { readonly send?: SendOptions } = {},
): Row {
  const { send, ...rest } = more;
  const act = (target: Target) => {
    const bytes = bytesFor(target);
    return sendBytes(target, Array.isArray(bytes) ? (bytes as Bytes) : [bytes as string | Buffer], send);
  };
  return { family, input, statuses: [status].flat(), act, ...rest };
}
