/** Asks the coordinator that served this page, and answers what the protocol describes, or why there is none. */
import type { ErrorAnswer } from "@callnumber/protocol/wire";
import { readable } from "./words.js";

/** Why there is no answer: `unreachable` for nobody there, else the code of the refusal. */
export class AskError extends Error {
  constructor(
    readonly code: string,
    message: string,
    /** How long to wait before the same is asked again, by itself; undefined when waiting mends nothing. */
    readonly waitMs?: number,
  ) {
    super(message);
  }
}

const TIMEOUT_MS = 20_000;
const WAIT_MIN_MS = 1_000;

/** Nothing is wrong but that too much is asked: other refusals stay what they are, however soon somebody asks again. */
const PASSING: ReadonlySet<string | undefined> = new Set(["rate_limited", "overloaded"]);

/** The address of one of the coordinator's paths (`/v1/…`), seen from this page, wherever a proxy has put the two. */
export function addressAtCoordinator(path: string): string {
  return new URL(`..${path}`, new URL("./", location.href.split("#")[0])).href;
}

/** A GET; with something to send, a POST. Tells `signedout` when nobody is signed in who may ask. @throws AskError */
export async function ask(path: string, sent?: object): Promise<unknown> {
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(addressAtCoordinator(path), {
      ...(sent && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(sent) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    body = parsed(await response.text());
  } catch {
    throw new AskError("unreachable", "The coordinator does not answer.");
  }
  if (response.ok) return body;
  const { code, message, retryAfterMs = 0 } = body as Partial<ErrorAnswer>;
  if (code === "unauthorized") dispatchEvent(new Event("signedout"));
  throw new AskError(
    code ?? `status ${response.status}`,
    message ?? "The coordinator refused without a word.",
    PASSING.has(code) ? Math.max(WAIT_MIN_MS, retryAfterMs) : undefined,
  );
}

/** JSON of the coordinator, in which no text can turn round or hide what stands beside it. */
export function parsed(text: string): unknown {
  return JSON.parse(text, (_, value: unknown) => (typeof value === "string" ? readable(value) : value));
}
