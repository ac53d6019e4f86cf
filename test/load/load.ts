/** A load from processes of its own, and what came of it. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { NAMESPACE } from "./loaded-coordinator.js";

const PROGRAM = join(import.meta.dirname, "load-process.mjs");
/** As in the program. */
const STEP = Math.log(1.02);

export interface LoadOptions {
  /** Connections, over all processes. */
  readonly callers: number;
  readonly durationMs: number;
  /** Requests a second, over all processes, whatever becomes of them. Undefined: each caller asks again when it is answered. */
  readonly perSecond?: number;
  /** Who is turned away stays away for as long as it is told, as importers do. Default false: it asks again when the next request is due. */
  readonly isPatient?: boolean;
}

export interface LoadResult {
  /** Requests whose time came; those for which no connection was free are not among `sent`. */
  readonly due: number;
  readonly sent: number;
  /** Sent later than 5 ms after their time: the load's own slowness. */
  readonly late: number;
  readonly served: number;
  readonly runs: number;
  /** By code; what has none is told whole. */
  readonly shed: Readonly<Record<string, number>>;
  /** Neither served nor told anything. */
  readonly unanswered: number;
  readonly tookMs: number;
  /** Of the served. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

type Told = Omit<LoadResult, "p50Ms" | "p99Ms"> & { readonly ms: readonly (number | null)[] };

export class Load {
  readonly #processes: readonly ChildProcess[];

  private constructor(processes: readonly ChildProcess[]) {
    this.#processes = processes;
  }

  /**
   * Each process asks from an address of its own. `isModest`: all but the first take what the coordinator and the first leave of the machine.
   * In practice callers have machines of their own.
   */
  static async start(url: string, processCount: number, isModest = false): Promise<Load> {
    const processes = Array.from({ length: processCount }, (_, index) =>
      fork(PROGRAM, [
        JSON.stringify({ url, namespace: NAMESPACE, name: `load-${index}`, address: `127.0.0.${index + 2}` }),
      ]),
    );
    if (isModest) {
      for (const { pid } of processes.slice(1)) setPriority(pid as number, constants.priority.PRIORITY_BELOW_NORMAL);
    }
    await Promise.all(processes.map((one) => once(one, "message")));
    return new Load(processes);
  }

  /** Some of the processes, to play something of their own at the same time. */
  part(from: number, to: number): Load {
    return new Load(this.#processes.slice(from, to));
  }

  async play({ callers, durationMs, perSecond, isPatient = false }: LoadOptions): Promise<LoadResult> {
    const { length } = this.#processes;
    await this.#ask({ callers: Math.ceil(callers / length) });
    return merged((await this.#ask({ durationMs, perSecond: perSecond && perSecond / length, isPatient })) as Told[]);
  }

  /** Every run that was leased to the load: whether it has it, and how often one came twice. */
  async leasedRuns(): Promise<{
    readonly has: (run: number) => boolean;
    readonly count: number;
    readonly repeats: number;
  }> {
    const told = (await this.#ask("runs")) as { runs: string; repeatedCount: number }[];
    const all = Buffer.alloc(2 ** 27);
    let [count, repeats] = [0, 0];
    for (const { runs, repeatedCount } of told) {
      repeats += repeatedCount;
      for (const [place, byte] of Buffer.from(runs, "base64").entries()) {
        if (byte === 0) continue;
        repeats += bitCount((all[place] as number) & byte);
        all[place] = (all[place] as number) | byte;
        count += bitCount(byte);
      }
    }
    return { has: (run) => ((all[run >>> 3] as number) & (1 << (run & 7))) !== 0, count: count - repeats, repeats };
  }

  async end(): Promise<void> {
    await Promise.all(
      this.#processes.map(async (one) => {
        const ended = once(one, "exit");
        one.disconnect();
        await ended;
      }),
    );
  }

  async #ask(message: object | string): Promise<unknown[]> {
    return await Promise.all(
      this.#processes.map(async (one) => {
        const answer = once(one, "message");
        one.send(message);
        return (await answer)[0] as unknown;
      }),
    );
  }
}

function merged(results: readonly Told[]): LoadResult {
  const sum = (of: (one: Told) => number) => results.reduce((total, one) => total + of(one), 0);
  const shed: Record<string, number> = {};
  const steps: number[] = [];
  for (const one of results) {
    for (const [code, count] of Object.entries(one.shed)) shed[code] = (shed[code] ?? 0) + count;
    for (const [step, count] of one.ms.entries()) steps[step] = (steps[step] ?? 0) + (count ?? 0);
  }
  return {
    due: sum(({ due }) => due),
    sent: sum(({ sent }) => sent),
    late: sum(({ late }) => late),
    served: sum(({ served }) => served),
    runs: sum(({ runs }) => runs),
    unanswered: sum(({ unanswered }) => unanswered),
    tookMs: Math.max(...results.map(({ tookMs }) => tookMs)),
    shed,
    p50Ms: quantileOf(steps, 0.5),
    p99Ms: quantileOf(steps, 0.99),
  };
}

/** NaN of none. */
function quantileOf(steps: readonly number[], share: number): number {
  const total = steps.reduce((sum, count = 0) => sum + count, 0);
  let seen = 0;
  for (const [step, count = 0] of steps.entries()) {
    seen += count;
    if (count > 0 && seen >= total * share) return Math.exp(step * STEP) / 1_000;
  }
  return Number.NaN;
}

function bitCount(byte: number): number {
  let count = 0;
  for (let rest = byte; rest !== 0; rest &= rest - 1) count++;
  return count;
}
