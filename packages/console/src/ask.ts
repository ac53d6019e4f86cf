/** Asks the coordinator that served this page: a GET, whose answer is what the protocol describes, or why there is none. */
import type { ErrorAnswer } from "@callnumber/protocol/wire";

/** Why there is no answer: `unreachable` for nobody there, else the code of the refusal. */
export class AskError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const TIMEOUT_MS = 20_000;

/** The address of one of the coordinator's paths (`/v1/…`), seen from this page, wherever a proxy has put the two. */
export function addressAtCoordinator(path: string): string {
  return new URL(`..${path}`, new URL("./", location.href.split("#")[0])).href;
}

/** @throws AskError */
export async function ask(path: string): Promise<unknown> {
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(addressAtCoordinator(path), { signal: AbortSignal.timeout(TIMEOUT_MS) });
    body = await response.json();
  } catch {
    throw new AskError("unreachable", "The coordinator does not answer.");
  }
  if (response.ok) return body;
  const { code, message } = body as Partial<ErrorAnswer>;
  throw new AskError(code ?? `status ${response.status}`, message ?? "The coordinator refused without a word.");
}
