/**
 * Turns away what there is no place for, of who asks and of its kind: before the body is read, by an answer that was made before. A flood
 * costs one event a second, with the sum and with whose it is, and so many answers as it has connections in each pause in which they are not read.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyRequest } from "fastify";
import type { Places } from "../limits/places.js";
import { OVERLOADED_RETRY_AFTER_MS, type UnderWay } from "../limits/under-way.js";
import type { Log } from "../log.js";
import { RefusalSum } from "../refusal-sum.js";
import type { TypedApp } from "./app.js";
import { askerOf } from "./asker.js";
import type { Access } from "./caller.js";
import { refusalAnswer } from "./constant-refusals.js";
import { HeldBack, type Pause } from "./held-back.js";
import { refusedCaller } from "./refused-caller.js";
import { whenClosed } from "./when-closed.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Of which kind a request is; `own`: the route sees to that. Default: by who may ask. */
    readonly places?: keyof Places | "own";
  }
}

/** What everybody may ask asks the store little or nothing. */
const PLACES_OF: Readonly<Record<Access, keyof Places | "own">> = {
  public: "own",
  lease: "leases",
  read: "questions",
  change: "questions",
  settings: "questions",
};

const SUM_EVERY_MS = 1_000;
/** Less than it is told to wait: who keeps to that is never met. */
const HELD_BACK: Pause = { leastMs: OVERLOADED_RETRY_AFTER_MS * 0.5, mostMs: OVERLOADED_RETRY_AFTER_MS * 0.9 };

const CODE = "overloaded";
/** What proxies say of themselves. */
const FORWARDED = ["x-forwarded-for", "forwarded", "via"];

/**
 * To be a hook behind those that find out who asks. `onLast` is told of a request whose answer ends its connection. Answers what ends all
 * this: the last sum is told, and everybody is read.
 */
export function turnAwayWhenFull(
  app: TypedApp,
  places: Places,
  log: Log,
  onLast: (request: IncomingMessage) => void,
): () => void {
  const answers: Readonly<Record<keyof Places, PreparedAnswer>> = {
    leases: preparedAnswer(places.leases),
    questions: preparedAnswer(places.questions),
    looks: preparedAnswer(places.looks),
    exports: preparedAnswer(places.exports),
  };
  const heldBack = new HeldBack(HELD_BACK);
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
    const { access = "public", places: kind = PLACES_OF[access] } = request.routeOptions.config;
    if (kind === "own") {
      done();
      return;
    }
    const asker = askerOf(request);
    if (places[kind].hasPlaceFor(asker)) {
      // A lease takes its place when its body is there: whoever sends it slowly would hold one.
      if (kind !== "leases") whenClosed(reply.raw, places[kind].begin(asker));
      done();
      return;
    }
    const { socket } = request.raw;
    const isHeld = !isForOthers(request);
    const isLast = isHeld && heldBack.sendsOn(socket);
    if (isLast) onLast(request.raw);
    const { status, headers, body } = answers[kind];
    reply.hijack();
    reply.raw.writeHead(status, isLast ? [...headers, "connection", "close"] : headers);
    reply.raw.end(body, () => {
      if (isHeld && !isLast) heldBack.hold(socket);
    });
    sum.add(refusedCaller(request));
    timer ??= setTimeout(tellSum, SUM_EVERY_MS).unref();
  });
  return () => {
    heldBack.end();
    tellSum();
  };
}

/** A proxy's connection serves many callers: all would wait for one of them. */
function isForOthers({ headers }: FastifyRequest): boolean {
  return FORWARDED.some((name) => headers[name] !== undefined);
}

interface PreparedAnswer {
  readonly status: number;
  /** Names and values in turns, as Node takes them with the least work. */
  readonly headers: (string | number)[];
  readonly body: Buffer;
}

function preparedAnswer({ message }: UnderWay): PreparedAnswer {
  const { status, headers, body } = refusalAnswer({ code: CODE, message, retryAfterMs: OVERLOADED_RETRY_AFTER_MS });
  return { status, headers: Object.entries(headers).flat(), body: Buffer.from(body) };
}
