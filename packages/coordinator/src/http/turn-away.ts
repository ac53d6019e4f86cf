/**
 * Turns leases and reports away while there is no place for who asks: before the body is read, by an answer that was made before. A flood
 * costs one event a second, with the sum and with whose it is. Whoever only looks is not turned away here: operators need it just then.
 */
import { OVERLOADED_MESSAGE, OVERLOADED_RETRY_AFTER_MS, type UnderWay } from "../limits/under-way.js";
import type { Log } from "../log.js";
import { RefusalSum } from "../refusal-sum.js";
import type { TypedApp } from "./app.js";
import { askerOf } from "./asker.js";
import { refusalAnswer } from "./constant-refusals.js";
import { refusedCaller } from "./refused-caller.js";

const SUM_EVERY_MS = 1_000;

const CODE = "overloaded";
const ANSWER = refusalAnswer({
  code: CODE,
  message: OVERLOADED_MESSAGE,
  retryAfterMs: OVERLOADED_RETRY_AFTER_MS,
});
const BODY = Buffer.from(ANSWER.body);
/** Names and values in turns, as Node takes them with the least work. */
const HEADERS = Object.entries(ANSWER.headers).flat();

/** To be a hook behind those that find out who asks. Answers what tells the last sum, at the end. */
export function turnAwayWhenFull(app: TypedApp, underWay: UnderWay, log: Log): () => void {
  let sum = new RefusalSum();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tellSum = () => {
    clearTimeout(timer);
    timer = undefined;
    const told = sum.told();
    sum = new RefusalSum();
    if (told.refusalCount > 0) log.warn({ code: CODE, ...told }, "refusals");
  };
  app.addHook("onRequest", (request, reply, done) => {
    if (request.routeOptions.config.access !== "lease" || underWay.hasPlaceFor(askerOf(request))) {
      done();
      return;
    }
    reply.hijack();
    reply.raw.writeHead(ANSWER.status, HEADERS);
    reply.raw.end(BODY);
    sum.add(refusedCaller(request));
    timer ??= setTimeout(tellSum, SUM_EVERY_MS).unref();
  });
  return tellSum;
}
