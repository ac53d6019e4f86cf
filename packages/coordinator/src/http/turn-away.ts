/**
 * Turns away what there is no place for, of who asks and of its kind: before the body is read, by an answer that was made before. A flood
 * costs one event a second, with the sum and with whose it is, and so many answers as it has connections in each pause in which they are not read.
 */
import type { IncomingMessage } from "node:http";
import { CoordinatorError } from "../errors.js";
import { RefusalSum } from "../event-suppressor.js";
import type { Places } from "../limits/places.js";
import { OVERLOADED_RETRY_AFTER_MS, type UnderWay } from "../limits/under-way.js";
import type { Log } from "../log.js";
import type { TypedApp } from "./app.js";
import { askerOf } from "./asker.js";
import type { Access } from "./caller.js";
import { refusalAnswer } from "./constant-refusals.js";
import type { HeldBack } from "./held-back.js";
import { refusedCaller } from "./refused-caller.js";
import { whenClosed } from "./when-closed.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Of which kind a request is; `own`: the route sees to that. Default: by who may ask. */
    readonly places?: keyof Places | "own";
  }
}

/** What everybody may ask asks the store little or nothing, where the route does not say otherwise. */
const PLACES_OF: Readonly<Record<Access, keyof Places | "own">> = {
  public: "own",
  lease: "leases",
  read: "questions",
  change: "questions",
  settings: "questions",
};

const SUM_EVERY_MS = 1_000;

const CODE = "overloaded";

export interface TurningAway {
  readonly places: Places;
  readonly heldBack: HeldBack;
  readonly log: Log;
  /** Told of a request whose answer ends its connection. */
  readonly onLast: (request: IncomingMessage) => void;
}

/** To be a hook behind those that find out who asks. Answers what tells the last sum. */
export function turnAwayWhenFull(app: TypedApp, { places, heldBack, log, onLast }: TurningAway): () => void {
  const answers: Readonly<Record<keyof Places, PreparedAnswer>> = {
    leases: preparedAnswer(places.leases),
    questions: preparedAnswer(places.questions),
    looks: preparedAnswer(places.looks),
    publicLooks: preparedAnswer(places.publicLooks),
    exports: preparedAnswer(places.exports),
  };
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
    const isLast = !heldBack.isSpared(request) && heldBack.sendsOn(request.raw.socket);
    if (isLast) onLast(request.raw);
    else heldBack.holdBehind(request, reply.raw);
    const { status, headers, body } = answers[kind];
    reply.hijack();
    reply.raw.writeHead(status, isLast ? [...headers, "connection", "close"] : headers);
    reply.raw.end(body);
    sum.add(refusedCaller(request));
    timer ??= setTimeout(tellSum, SUM_EVERY_MS).unref();
  });
  // Whose head came when there was a place, and its body when there was none.
  app.addHook("onError", (request, reply, error, done) => {
    if (error instanceof CoordinatorError && error.code === CODE) heldBack.holdBehind(request, reply.raw);
    done();
  });
  return tellSum;
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
