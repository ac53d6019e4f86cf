/**
 * Answers that serve nobody: refusals for what was asked, and what everybody may ask. Each is given, also to a stranger; but whoever has too
 * many of them is not read for a while behind each, so that they cost a bounded time, however many connections ask for them.
 */
import type { ErrorCode } from "@callnumber/protocol/wire";
import type { FastifyReply, FastifyRequest } from "fastify";
import { CoordinatorError } from "../errors.js";
import { type Allowance, Buckets } from "../limits/buckets.js";
import type { TypedApp } from "./app.js";
import { askerOf } from "./asker.js";
import type { HeldBack } from "./held-back.js";

/** Of one token, or of one network: a console's page needs some ten, probes some a second. */
const OF_ONE: Allowance = { atOnce: 256, perSecond: 128 };
/** Of all together: networks are cheap. */
const OF_ALL: Allowance = { atOnce: 2_048, perSecond: 1_024 };
const ASKERS_KEPT_MAX = 10_000;
const ALL = "all";

/**
 * Refused for what the caller says or has, although the status is one of the server's own. The pause is shorter than what the answer tells to
 * wait: who keeps to that is never met, also where it is the store's clock that disagrees.
 */
const CALLERS_OWN: ReadonlySet<ErrorCode> = new Set(["clocks_disagree", "too_many_streams"]);

/** @param nowMs a clock that never goes back. */
export function keepAnswerPace(app: TypedApp, heldBack: HeldBack, nowMs: () => number = () => performance.now()): void {
  const ofOne = new Buckets(OF_ONE, ASKERS_KEPT_MAX);
  const ofAll = new Buckets(OF_ALL, 1);
  app.addHook("onSend", (request, reply, _payload, done) => {
    const { access = "public" } = request.routeOptions.config;
    const isRefused = reply.statusCode >= 400 && reply.statusCode < 500;
    if (isRefused || access === "public") pace(request, reply);
    done();
  });
  app.addHook("onError", (request, reply, error, done) => {
    if (error instanceof CoordinatorError && CALLERS_OWN.has(error.code)) pace(request, reply);
    done();
  });

  function pace(request: FastifyRequest, reply: FastifyReply): void {
    if (!takesOne(askerOf(request))) heldBack.holdBehind(request, reply.raw);
  }

  function takesOne(asker: string): boolean {
    const now = nowMs();
    const place = ofOne.placeOf(asker, now);
    if (ofOne.available(place, now) < 1) return false;
    ofOne.take(place, 1, now);
    // Not before: one who has had its own takes nothing from the others.
    if (ofAll.available(ALL, now) < 1) return false;
    ofAll.take(ALL, 1, now);
    return true;
  }
}
