/** The web framework's log as events of the coordinator: a refusal is told to whoever listens, like a lease. */
import type { FastifyBaseLogger } from "fastify";
import type { Log } from "../log.js";

/** Takes what our routes tell (fields, event). What the framework says in words of its own is no event, and is left out. */
export function eventLog(log: Log): FastifyBaseLogger {
  const told =
    (level: keyof Log) =>
    (fields: unknown, event?: string): void => {
      if (typeof fields === "object" && fields !== null && event !== undefined) log[level](fields, event);
    };
  const logger: FastifyBaseLogger = {
    level: "info",
    silent: () => {},
    trace: () => {},
    debug: told("debug"),
    info: told("info"),
    warn: told("warn"),
    error: told("error"),
    fatal: told("error"),
    child: () => logger,
  };
  return logger;
}
