/**
 * Requests to the coordinator that served this page. The token that a person typed in is kept here, and in the session storage of the tab, so
 * that a reload does not ask for it again: until it is forgotten, or the tab is closed.
 */
import { type ErrorResponse, ROUTES } from "@callnumber/protocol/api";
import type { NamespacesResponse } from "@callnumber/protocol/schemas";
import { escapeText } from "./format.js";

/** Why a request has no response: `unreachable`, or the code of the error. */
export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
    /** How long to wait before the request is repeated automatically; undefined when repeating does not help. */
    readonly waitMs?: number,
  ) {
    super(message);
  }
}

const TIMEOUT_MS = 20_000;
const WAIT_MIN_MS = 1_000;

/** Only too many requests: other errors stay, however soon the request is repeated. */
const TRANSIENT: ReadonlySet<string | undefined> = new Set(["rate_limited", "overloaded"]);

/** Of the session storage, which belongs to this tab and origin. */
const TOKEN_KEY = "callnumber-token";

let token: string | undefined;
let hasAccess = false;

export function isSignedIn(): boolean {
  return token !== undefined;
}

/** Forgets the token, and all that was read with it: the sign-in page opens. */
export function signOut(): void {
  remember(undefined);
  location.reload();
}

/** A browser that keeps nothing of pages throws: then a reload asks for the token. */
function remember(kept: string | undefined): void {
  token = kept;
  try {
    if (kept === undefined) sessionStorage.removeItem(TOKEN_KEY);
    else sessionStorage.setItem(TOKEN_KEY, kept);
  } catch {}
}

function remembered(): string | undefined {
  try {
    return sessionStorage.getItem(TOKEN_KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * Finds out whether this page may read: with the token that was typed, the one that this tab remembers, or without one. Resolves to the namespaces that it may read, or to undefined when
 * the request failed for another reason; the pages show that.
 * @throws RequestError `unauthorized` or `forbidden` when it may not. Then no token is kept.
 */
export async function authenticate(typed?: string): Promise<NamespacesResponse | undefined> {
  // Anything else can't be a token, nor be sent in a header.
  if (typed !== undefined && !/^[!-~]+$/.test(typed)) throw new RequestError("unauthorized", "");
  token = typed ?? remembered();
  let namespaces: NamespacesResponse | undefined;
  try {
    namespaces = (await request(ROUTES.namespaces)) as NamespacesResponse;
  } catch (error) {
    if (["unauthorized", "forbidden"].includes((error as RequestError).code)) {
      remember(undefined);
      throw error;
    }
  }
  remember(token);
  hasAccess = true;
  return namespaces;
}

/** The URL of one of the coordinator's paths (`/v1/…`), as seen from this page, wherever a proxy has put the two. */
export function coordinatorUrl(path: string): string {
  return new URL(`..${path}`, new URL("./", location.href.split("#")[0])).href;
}

/** @throws RequestError */
export async function request(path: string): Promise<unknown> {
  const response = await send(path, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  return parsed(await response.text().catch(unreachable));
}

/** Opens the event stream, from the event after `lastEventId` on. @throws RequestError */
export async function openEventStream(lastEventId: string | undefined): Promise<ReadableStream<Uint8Array>> {
  const headers = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
  const { body } = await send(`${ROUTES.events}?recent=yes`, { headers });
  return body ?? unreachable();
}

/** Saves what is at the path as a file. A link can't send a token. @throws RequestError */
export async function download(path: string, fileName: string): Promise<void> {
  const content = await (await send(path)).blob().catch(unreachable);
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(content), download: fileName });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), TIMEOUT_MS);
}

/** JSON of the coordinator, in which no text can turn round or hide what is next to it. */
export function parsed(text: string): unknown {
  return JSON.parse(text, (_, value: unknown) => (typeof value === "string" ? escapeText(value) : value));
}

async function send(
  path: string,
  { headers = {}, signal }: Pick<RequestInit, "headers" | "signal"> = {},
): Promise<Response> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const init = { headers: { ...headers, ...authorization }, signal: signal ?? null };
  const response = await fetch(coordinatorUrl(path), init).catch(unreachable);
  if (response.ok) return response;
  const error = await errorIn(response);
  // The token was revoked, or tokens are required from now on: nothing of what was read stays in the page, and the sign-in page opens.
  if (error.code === "unauthorized" && hasAccess) signOut();
  throw error;
}

async function errorIn(response: Response): Promise<RequestError> {
  let body: Partial<ErrorResponse>;
  try {
    body = parsed(await response.text()) as Partial<ErrorResponse>;
  } catch {
    return unreachable();
  }
  const { code = `status ${response.status}`, message = "The coordinator gave no reason.", retryAfterMs = 0 } = body;
  return new RequestError(code, message, TRANSIENT.has(code) ? Math.max(WAIT_MIN_MS, retryAfterMs) : undefined);
}

function unreachable(): never {
  throw new RequestError("unreachable", "The coordinator does not answer.");
}
