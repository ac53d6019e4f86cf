/** What a coordinator logs to. Event names are stable: docs/reference/metrics-and-events.md lists them all. */

/** The part of a logger that the coordinator uses; pino fits it. */
export interface Log {
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
}

/** A log that writes nothing. */
export const SILENT_LOG: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Milliseconds since `startedMs` (of `performance.now()`), rounded to microseconds: more would be noise in the log. */
export function msSince(startedMs: number): number {
  return Math.round((performance.now() - startedMs) * 1_000) / 1_000;
}
