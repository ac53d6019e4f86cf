/** One machine with one importer on it: its time, its clock, what its process remembers and what its disk does. */
import type { Clock, Memory, NodeIdentity } from "../mint-context.js";

/** A restart takes longer than any unit of a clock; a quick one does not. */
export const RESTART_MS = 2_000;
export const QUICK_RESTART_MS = 100;

interface Restart {
  readonly tookMs: number;
  /** The number of the new process; that of the one before, where the system gives it again. */
  readonly pid: number;
}

export class SimulatedNode {
  /** True time since the world began, which nobody in it knows. */
  trueMs = 0;
  /** Clock milliseconds in one of true time. */
  clockPace = 1;
  /** What the clock said when it was last asked: whole milliseconds since 1970. */
  readMs = Number.NaN;
  /** Counts the processes of this node; each begins without a memory. */
  process = 0;
  /** Counts its disks. */
  diskCount = 0;
  /** What the central counter said last to this node, and which asking of all that was. */
  answer: { readonly value: bigint; readonly asking: number } | undefined;
  memory: Memory = new Map();
  disk: Memory = new Map();
  readonly clock: Clock = { nowMs: () => this.#read() };
  readonly #beganMs: number;
  #steppedMs = 0;

  constructor(
    readonly index: number,
    public identity: NodeIdentity,
    beganMs: number,
  ) {
    this.#beganMs = beganMs;
  }

  /** Forward where `ms` is negative. */
  stepClockBack(ms: number): void {
    this.#steppedMs -= ms;
  }

  /** What was in memory is gone; what is on the disk stays. */
  restart({ tookMs, pid }: Restart): void {
    this.trueMs += tookMs;
    this.process++;
    this.memory = new Map();
    this.identity = { ...this.identity, pid };
  }

  loseDisk(): void {
    this.diskCount++;
    this.disk = new Map();
  }

  #read(): number {
    this.readMs = Math.floor(this.#beganMs + this.trueMs * this.clockPace + this.#steppedMs);
    return this.readMs;
  }
}
