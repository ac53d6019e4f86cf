/**
 * A door that also knows who is signed in at the console. A cookie is good for looking, and for nothing else, ever; and only for
 * pages of this coordinator's own. A request that bears `Authorization` is judged by that alone.
 */
import type { FastifyRequest } from "fastify";
import type { Door } from "./auth.js";
import type { Caller } from "./caller.js";
import { isFromOwnPage } from "./own-page.js";
import { sessionCookiesIn } from "./session-cookie.js";
import type { Session, Sessions } from "./sessions.js";

export class SessionDoor implements Door {
  readonly #door: Door;
  readonly #sessions: Sessions;

  constructor(door: Door, sessions: Sessions) {
    this.#door = door;
    this.#sessions = sessions;
  }

  callerOf(request: FastifyRequest): Caller | undefined {
    const caller = this.#door.callerOf(request);
    if (caller !== undefined || request.headers.authorization !== undefined) return caller;
    return sessionOf(request, this.#sessions)?.caller;
  }

  knows(caller: Caller): boolean {
    return this.#sessions.knows(caller) || this.#door.knows(caller);
  }
}

/** The session whose cookie a page of our own sent along; undefined when there is none, or another's page made the request. */
export function sessionOf(request: FastifyRequest, sessions: Sessions): Session | undefined {
  for (const { secret, scheme } of sessionCookiesIn(request)) {
    const session = isFromOwnPage(request.headers, scheme) ? sessions.use(secret) : undefined;
    if (session !== undefined) return session;
  }
  return undefined;
}
