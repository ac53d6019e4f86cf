/**
 * The log of `serve`: JSON by pino, or text for a terminal. Leasing never waits for the log and never ends because of it.
 */
import { setTimeout as delay } from "node:timers/promises";
import { EventHub, type Log, RecentEvents, SILENT_LOG } from "@callnumber/coordinator";
import { CALLER_EVENTS, EventSuppressor, isRecoverable } from "@callnumber/coordinator/internal";
import { escapeAndShorten, escapeJson, MESSAGE_LENGTH_MAX } from "@callnumber/coordinator/internal/text";
import { type CommandContext, DEFAULT_NAMESPACE, filledJson, STORE_URL } from "@callnumber/protocol/api";
import { pino } from "pino";
import { invocation } from "../invocation.js";

export interface LogOptions {
  readonly coordinatorName: string;
  readonly logLevel?: string;
  readonly json?: boolean;
}

/**
 * Opens the log on standard output. On a terminal it is text, unless its level or JSON was asked for. `events` gets every event and
 * writes the log. `close` writes what waits, as far as that is possible within a second.
 */
export function openLog(
  { coordinatorName, logLevel, json = false }: LogOptions,
  commands: CommandContext,
  printError: (text: string) => void,
): { readonly events: EventHub; readonly recentEvents: RecentEvents; close(): Promise<void> } {
  const command = invocation();
  const { stdout } = command.io;
  const events = new EventHub(SILENT_LOG);
  const onDropped = (dropped: DroppedLines) => events.error(dropped, "log_lines_dropped");
  const destination =
    stdout.fd === undefined ? undefined : new LogDestination({ fd: stdout.fd, printError, onDropped });
  command.onEnd(() => destination?.flush());
  const hooks = { streamWrite: (line: string) => escapeJson(filledLine(line, commands)) };
  const log =
    stdout.isTTY && logLevel === undefined && !json
      ? terminalLog(printError)
      : pino(
          { level: logLevel ?? "info", base: { coordinator: coordinatorName }, hooks },
          destination?.stream ?? stdout,
        );
  const suppressor = new EventSuppressor(CALLER_EVENTS, ({ level, event, fields }) => log[level](fields, event));
  events.subscribe(suppressor.take);
  const recentEvents = new RecentEvents();
  events.subscribe(recentEvents.take);
  return {
    events,
    recentEvents,
    close: async () => {
      suppressor.close();
      await destination?.close();
    },
  };
}

/** Fills in the commands in a line of the log, with its end. */
function filledLine(line: string, context: CommandContext): string {
  return line.includes(STORE_URL) ? `${filledJson(line, context)}\n` : line;
}

const WAITING_BYTES_MAX = 8 * 1_024 * 1_024;
const RETRY_MS = 20;
const REPORT_EVERY_MS = 60_000;
const CLOSE_TIMEOUT_MS = 1_000;

export interface DroppedLines {
  /** Dropped since the last report. */
  readonly lineCount: number;
  readonly reason: string;
}

export interface LogDestinationOptions {
  readonly fd: number;
  /** Gets text for people: at the first failure, once a minute while it lasts, and when it is over. */
  readonly printError: (text: string) => void;
  /** Called at the first dropped line, then once a minute, and when lines are written again. It may write lines itself. */
  readonly onDropped: (dropped: DroppedLines) => void;
  /** Bytes of lines that may wait. Default: 8 MiB. */
  readonly waitingBytesMax?: number;
  readonly now?: () => number;
}

/**
 * A synchronous destination of pino, so that the line of a lease is written before its response. Lines that can't be written, on a full
 * disk or to a reader that stalls, wait in bounded memory. Lines beyond that are dropped and counted.
 */
export class LogDestination {
  /** For pino. Its `write` never throws and never waits. */
  readonly stream: ReturnType<typeof pino.destination>;
  readonly #options: LogDestinationOptions;
  #timer: NodeJS.Timeout | undefined;
  #isBehind = false;
  #reason = "";
  #droppedCount = 0;
  #unreportedCount = 0;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #hasReported = false;

  constructor(options: LogDestinationOptions) {
    this.#options = options;
    const { fd, waitingBytesMax = WAITING_BYTES_MAX } = options;
    // Retrying would block the event loop. `flush()` does nothing where `minLength` is 0.
    const retryEAGAIN = () => false;
    this.stream = pino.destination({ dest: fd, sync: true, minLength: 1, maxLength: waitingBytesMax, retryEAGAIN });
    // Pino's own listener ends all writing, uncounted, when a pipe breaks.
    this.stream.removeAllListeners("error");
    this.stream.on("error", (error: NodeJS.ErrnoException) => this.#fail(error));
    this.stream.on("drop", () => {
      this.#droppedCount++;
      this.#unreportedCount++;
      this.#reportFailure();
    });
  }

  /** Writes the lines that wait, as far as that is possible now. */
  flush(): void {
    if (!this.#isBehind) return;
    this.#isBehind = false;
    // A failure sets it again before this returns.
    this.stream.flush();
    if (this.#isBehind) return;
    if (this.#hasReported) {
      this.#hasReported = false;
      this.#options.printError(`The log is written again. Lines dropped since the start: ${this.#droppedCount}`);
    }
    this.#reportDropped();
  }

  /** Waits up to a second for the lines that can't be written yet, and reports when some are left. */
  async close(): Promise<void> {
    for (let waitedMs = 0; this.#isBehind && waitedMs < CLOSE_TIMEOUT_MS; waitedMs += RETRY_MS) {
      await delay(RETRY_MS);
      this.flush();
    }
    clearTimeout(this.#timer);
    if (this.#isBehind) this.#options.printError(`The last lines of the log were not written: ${this.#reason}`);
  }

  #fail({ code, message }: NodeJS.ErrnoException): void {
    this.#isBehind = true;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush();
    }, RETRY_MS).unref();
    const isSlowReader = code === "EAGAIN";
    this.#reason = isSlowReader ? "its reader stalls" : message;
    // A slow reader is no failure until a line is dropped.
    if (!isSlowReader || this.#unreportedCount > 0) this.#reportFailure();
  }

  #reportFailure(): void {
    const { printError, now = Date.now } = this.#options;
    const nowMs = now();
    // A clock that moves backward must not suppress the report.
    if (Math.abs(nowMs - this.#reportedAtMs) < REPORT_EVERY_MS) return;
    this.#reportedAtMs = nowMs;
    this.#hasReported = true;
    printError(`Can't write the log, and leasing continues: ${this.#reason}. Lines dropped: ${this.#droppedCount}`);
    this.#reportDropped();
  }

  #reportDropped(): void {
    const lineCount = this.#unreportedCount;
    this.#unreportedCount = 0;
    if (lineCount > 0) this.#options.onDropped({ lineCount, reason: this.#reason });
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** The namespace comes first; a nonce is for its holder alone. */
const HIDDEN: ReadonlySet<string> = new Set(["namespace", "nonce"]);

/** Writes warnings and errors, a line of text each. */
export function terminalLog(printError: (text: string) => void): Log {
  const write = (severity: string) => (fields: object, event: string) => {
    const text = textOf(severity, fields as Fields, event);
    if (text !== undefined) printError(text);
  };
  return { debug: () => {}, info: () => {}, warn: write("Warning"), error: write("Error") };
}

function textOf(severity: string, fields: Fields, event: string): string | undefined {
  const { namespace, explanation, reason, what, remedy, err } = fields;
  if (event === "recovered")
    return `${explanation}${namespace === DEFAULT_NAMESPACE ? "" : ` (namespace ${namespace})`}`;
  // The recovery that follows at once is logged as recovered, and what prevents it under another code.
  if (event === "recovering" && isRecoverable(fields)) return undefined;
  const where = typeof namespace === "string" ? `, namespace ${namespace}` : "";
  if (err instanceof Error) return `${severity}${where}: ${err.stack} (${event})`;
  const message = [remedy && `${what}. ${remedy}`, explanation, reason, what].find((each) => typeof each === "string");
  const text = String(message ?? formatFields(fields));
  return text === "" ? undefined : `${severity}${where}: ${escapeAndShorten(text, MESSAGE_LENGTH_MAX)} (${event})`;
}

function formatFields(fields: Fields): string {
  return Object.entries(fields)
    .filter(([name]) => !HIDDEN.has(name))
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}
