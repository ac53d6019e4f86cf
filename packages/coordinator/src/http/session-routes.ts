/**
 * `/console/session`: signing in at the console with a token, and out. Another site's page can do neither. A wrong token, a revoked one
 * and none are answered alike; who bears a good one that is no reader's is told so.
 */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { consoleSessionAnswerSchema, signInRequestSchema } from "@callnumber/protocol/operator-schemas";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { type Allowance, Buckets } from "../limits/token-buckets.js";
import type { Log } from "../log.js";
import type { TypedApp } from "./app.js";
import { networkOf } from "./asker.js";
import { type Caller, mayKnowSettings } from "./caller.js";
import type { Refusals } from "./error-response.js";
import { errorResponses } from "./error-responses.js";
import { isSentByOwnPage, schemeOf } from "./own-page.js";
import { endedCookie, sessionCookie, sessionCookiesIn } from "./session-cookie.js";
import { sessionOf } from "./session-door.js";
import { SESSION_AGE_MAX_MS, type Sessions } from "./sessions.js";
import type { StartedWith } from "./settings-route.js";

/** Who may ask is who has a token, or its cookie: looked at here. Hidden from OpenAPI: only the page asks. */
const PUBLIC = { access: "public" } as const;

/**
 * How often an address may try to sign in and fail. What keeps guessers out are the 256 bits of a token; this keeps them from filling the log, and
 * shows that somebody guesses. Who has a good token signs in all the same: behind a proxy everybody has the address of one who tries for ever.
 */
export const FAILURES: Allowance = { atOnce: 10, perSecond: 1 / 6 };
const ADDRESSES_KEPT_MAX = 1_000;

interface Surroundings {
  /** Undefined where nobody is asked for a token: then there is nothing to sign in to. */
  readonly sessions: Sessions | undefined;
  readonly refusals: Refusals;
  readonly log: Log;
  readonly startedWith: StartedWith | undefined;
}

export function sessionRoutes(app: TypedApp, { sessions, refusals, log, startedWith }: Surroundings): void {
  app.get(
    OPERATOR_ROUTES.session,
    { config: PUBLIC, schema: { hide: true, response: { 200: consoleSessionAnswerSchema, ...errorResponses } } },
    async (request, reply) => {
      const session = sessions && sessionOf(request, sessions);
      return reply.send({
        isNeeded: sessions !== undefined,
        session: session ? told(session.caller, session.endsInMs) : null,
        commands: mayKnowSettings(request.caller) ? (startedWith?.commands ?? null) : null,
      });
    },
  );
  if (sessions === undefined) return;
  const failures = new Buckets(FAILURES, ADDRESSES_KEPT_MAX);
  const ofOwnPage = async (request: FastifyRequest, reply: FastifyReply) => {
    const refusal = refusalOf(request);
    if (refusal !== undefined) reply.send(refusals.refuse(refusal, request, reply));
    return refusal && reply;
  };
  app.post(
    OPERATOR_ROUTES.session,
    {
      config: PUBLIC,
      onRequest: ofOwnPage,
      schema: {
        hide: true,
        body: signInRequestSchema,
        response: { 201: consoleSessionAnswerSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const ofToken = sessions.callerOfToken(request.body.token);
      if (ofToken === undefined) {
        const nowMs = performance.now();
        const address = failures.placeOf(networkOf(request.ip), nowMs);
        const retryAfterMs = failures.untilOneMs(address, nowMs);
        if (retryAfterMs > 0) {
          const message = "too many attempts to sign in from this address; try again in a moment";
          return refusals.refuse({ code: "rate_limited", message, retryAfterMs }, request, reply) as never;
        }
        failures.take(address, 1, nowMs);
        const message = "no such token is known here: copy it again, whole, or ask for a new one";
        return refusals.refuse({ code: "unauthorized", message }, request, reply) as never;
      }
      if (!ofToken.accesses.has("read")) {
        const message =
          "this token is for importers: it takes runs and shows nothing. Sign in with a token of role read or operator";
        return refusals.refuse({ code: "forbidden", message }, request, reply) as never;
      }
      // A browser has one session at a time.
      for (const { secret } of sessionCookiesIn(request)) sessions.end(secret);
      const scheme = schemeOf(request.headers.origin) ?? "http:";
      reply.header("set-cookie", sessionCookie(request, scheme, sessions.begin(ofToken)));
      log.info({ tokenId: ofToken.tokenId }, "sign_in");
      return reply.code(201).send({ isNeeded: true, session: told(ofToken, SESSION_AGE_MAX_MS), commands: null });
    },
  );
  app.post(
    OPERATOR_ROUTES.sessionEnd,
    {
      config: PUBLIC,
      onRequest: ofOwnPage,
      schema: {
        hide: true,
        body: z.strictObject({}),
        response: { 200: consoleSessionAnswerSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      for (const { secret } of sessionCookiesIn(request)) {
        const ended = sessions.end(secret);
        if (ended !== undefined) log.info({ tokenId: ended.tokenId }, "sign_out");
      }
      reply.header("set-cookie", endedCookie(request, schemeOf(request.headers.origin) ?? "http:"));
      return { isNeeded: true, session: null, commands: null };
    },
  );
}

/** Before anything is read but the head. */
function refusalOf({ headers }: FastifyRequest): Parameters<Refusals["refuse"]>[0] | undefined {
  if (!isSentByOwnPage(headers)) {
    const message = "only the console's own page signs in and out; a program sends its token with each request";
    return { code: "forbidden", message };
  }
  // Exactly: whatever else carries JSON could be sent by a form.
  if (headers["content-type"] === "application/json") return undefined;
  return { code: "unsupported_media_type", message: "the content type must be application/json" };
}

function told({ tokenId, namespaces }: Caller, endsInMs: number) {
  return { tokenId, namespaces: namespaces === "all" ? namespaces : [...namespaces], endsInMs };
}
