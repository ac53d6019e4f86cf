/** The part of a logger that is used; pino fits it. Event names are stable: docs/monitoring.md lists them all. */
export interface Log {
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
}

export const SILENT_LOG: Log = { debug() {}, info() {}, warn() {}, error() {} };
