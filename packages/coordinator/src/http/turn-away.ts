/**
 * Turns leases and reports away while as many are under way as may be: as soon as the head of a request is read, by an answer that was made
 * before. A flood costs one event a second, with the sum. Whoever only looks is never turned away: operators need it just then.
 */
import { ERROR_RULES, type ErrorAnswer } from "@callnumber/protocol/wire";
import { OVERLOADED_MESSAGE, OVERLOADED_RETRY_AFTER_MS, type UnderWay } from "../limits/under-way.js";
import type { Log } from "../log.js";
import type { TypedApp } from "./app.js";
import { FOR_OWN_PAGES } from "./own-page-headers.js";

const SUM_EVERY_MS = 1_000;

const ANSWER: ErrorAnswer = {
  code: "overloaded",
  message: OVERLOADED_MESSAGE,
  retryAfterMs: OVERLOADED_RETRY_AFTER_MS,
};
const BODY = Buffer.from(JSON.stringify(ANSWER));
/** Names and values in turns, as Node takes them with the least work. */
const HEADERS = Object.entries({
  ...FOR_OWN_PAGES,
  "content-type": "application/json; charset=utf-8",
  "content-length": String(BODY.length),
  "cache-control": "no-store",
  "retry-after": String(Math.ceil(OVERLOADED_RETRY_AFTER_MS / 1_000)),
}).flat();

/** To be the first hook. Answers what tells the last sum, at the end. */
export function turnAwayWhenFull(app: TypedApp, underWay: UnderWay, log: Log): () => void {
  let refusalCount = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tellSum = () => {
    clearTimeout(timer);
    timer = undefined;
    if (refusalCount > 0) log.warn({ code: ANSWER.code, refusalCount }, "refusals");
    refusalCount = 0;
  };
  app.addHook("onRequest", (request, reply, done) => {
    if (!underWay.isFull || request.routeOptions.config.access !== "lease") {
      done();
      return;
    }
    reply.hijack();
    reply.raw.writeHead(ERROR_RULES.overloaded.httpStatus, HEADERS);
    reply.raw.end(BODY);
    refusalCount++;
    timer ??= setTimeout(tellSum, SUM_EVERY_MS).unref();
  });
  return tellSum;
}
