/**
 * The W3C trace context that a caller sent with its request, so that every log line of that request can be found by the caller's
 * trace. The coordinator makes no spans of its own and passes nothing on. Knows nothing of HTTP but the two headers.
 * Costs nothing where nobody sends one: while contexts are kept, each promise of the process costs a little more (on Node 20 a
 * fifth of a request's CPU), so that the keeping ends when none has come for a while.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** As the fields stand on a log line. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The caller's span: 16 hexadecimal digits. */
  readonly parentSpanId: string;
  /** 2 hexadecimal digits; the last bit says that the trace is recorded. */
  readonly traceFlags: string;
  /** What vendors add, as it came; left out when it came malformed or not at all. */
  readonly traceState?: string;
}

/** Headers of a request, by their names in lower case. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A later version may have more behind a dash; of what this one knows, the first four fields stay. */
const PARENT_PATTERN = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NOTHING_BUT_ZEROS = /^0+$/;
const INVALID_VERSION = "ff";
const STATE_LENGTH_MAX = 512;
const STATE_KEY = "[a-z0-9][a-z0-9_*/@-]{0,255}";
const STATE_VALUE = "[\\x20-\\x2b\\x2d-\\x3c\\x3e-\\x7e]{0,255}[\\x21-\\x2b\\x2d-\\x3c\\x3e-\\x7e]";
const STATE_PATTERN = new RegExp(`^${STATE_KEY}=${STATE_VALUE}$`);

/** Longer than anything lasts that a request has begun. */
export const KEPT_MS = 30_000;

const current = new AsyncLocalStorage<TraceContext>();
let keeping: ReturnType<typeof setTimeout> | undefined;

/** The context that the headers tell of; undefined when there is none, or a malformed one, which the standard says to ignore. */
export function traceContextOf({ traceparent, tracestate }: Headers): TraceContext | undefined {
  if (typeof traceparent !== "string") return undefined;
  const [, version, traceId, parentSpanId, traceFlags, more] = PARENT_PATTERN.exec(traceparent) ?? [];
  if (traceId === undefined || parentSpanId === undefined || traceFlags === undefined) return undefined;
  if (version === INVALID_VERSION || (version === "00" && more !== undefined)) return undefined;
  if (NOTHING_BUT_ZEROS.test(traceId) || NOTHING_BUT_ZEROS.test(parentSpanId)) return undefined;
  const context = { traceId, parentSpanId, traceFlags };
  return typeof tracestate === "string" && isTraceState(tracestate) ? { ...context, traceState: tracestate } : context;
}

/** Does something within the context that the headers tell of, if any: what is logged by it bears the context. */
export function withinTrace<T>(headers: Headers, act: () => T): T {
  if (headers["traceparent"] === undefined) return act();
  const context = traceContextOf(headers);
  if (context === undefined) return act();
  keepOn();
  return current.run(context, act);
}

/** The fields of a log line, with those of the context in which it is written. */
export function withTraceFields(fields: object): object {
  const context = current.getStore();
  return context === undefined ? fields : { ...fields, ...context };
}

function keepOn(): void {
  if (keeping !== undefined) keeping.refresh();
  else keeping = setTimeout(endKeeping, KEPT_MS).unref();
}

function endKeeping(): void {
  keeping = undefined;
  current.disable();
}

function isTraceState(text: string): boolean {
  if (text.length > STATE_LENGTH_MAX) return false;
  const members = text.split(",").map((member) => member.trim());
  return members.some(Boolean) && members.every((member) => member === "" || STATE_PATTERN.test(member));
}
