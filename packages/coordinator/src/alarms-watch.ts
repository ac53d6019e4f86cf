/**
 * Looks at the alarms of every namespace now and then, also when nobody asks, and tells the log once when one begins, once when it
 * gets another severity, and once when it has ended.
 */
import type { Alarm, AlarmName, AlarmSeverity } from "@callnumber/protocol/operator";
import { CoordinatorError } from "./errors.js";
import type { Log } from "./log.js";

/** Twice a minute, so that what begins is told within one. */
const ALARMS_EVERY_MS = 30_000;

export interface AlarmsWatchOptions {
  readonly log: Log;
  readonly namespaces: () => Promise<Iterable<string>>;
  readonly alarmsOf: (namespace: string) => Promise<readonly Alarm[]>;
}

export class AlarmsWatch {
  readonly #options: AlarmsWatchOptions;
  readonly #raised = new Map<string, ReadonlyMap<AlarmName, AlarmSeverity>>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: AlarmsWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.look(), ALARMS_EVERY_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#looking;
  }

  /** Once over all namespaces; a look that is under way is enough for both. */
  look(): Promise<void> {
    this.#looking ??= this.#lookAtAll().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookAtAll(): Promise<void> {
    const { log, namespaces } = this.#options;
    try {
      // One after the other: leases come first.
      for (const namespace of await namespaces()) await this.#lookAt(namespace);
    } catch (error) {
      log.warn({ reason: (error as Error).message }, "alarms_failed");
    }
  }

  /** What was raised stays so while nothing can be read. */
  async #lookAt(namespace: string): Promise<void> {
    const { log, alarmsOf } = this.#options;
    let alarms: readonly Alarm[];
    try {
      alarms = await alarmsOf(namespace);
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      log.debug({ namespace, code: error.code, reason: error.message }, "alarms_unknown");
      return;
    }
    const before = this.#raised.get(namespace) ?? new Map<AlarmName, AlarmSeverity>();
    const now = new Map(alarms.map(({ name, severity }) => [name, severity]));
    this.#raised.set(namespace, now);
    for (const alarm of alarms) {
      if (before.get(alarm.name) !== alarm.severity) log.warn({ namespace, ...alarm }, "alarm");
    }
    for (const name of before.keys()) if (!now.has(name)) log.info({ namespace, name }, "alarm_ended");
  }
}
