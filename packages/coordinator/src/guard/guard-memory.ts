/**
 * What a guard remembers of its store, in the process and in its checkpoint file: lower bounds for every answer, and whether the store was moved.
 * Guarantees: G8, G13 (docs/guarantees.md).
 */
import type { CoordinatorError } from "../errors.js";
import { type Checkpoint, type CheckpointFile, checkpointOf, mergeCheckpoints } from "./checkpoint.js";
import type { RecordAfter } from "./commands.js";
import { refused } from "./refusals.js";

export class GuardMemory {
  readonly #namespace: string;
  readonly #file: CheckpointFile;
  #checkpoint: Checkpoint;
  /** The write of the checkpoint that is about to begin. */
  #write: Promise<void> | undefined;

  constructor(namespace: string, file: CheckpointFile, checkpoint: Checkpoint) {
    this.#namespace = namespace;
    this.#file = file;
    this.#checkpoint = checkpoint;
  }

  get checkpoint(): Checkpoint {
    return this.#checkpoint;
  }

  /** What a healthy store has at least. */
  get lowerBounds(): { readonly floor: number; readonly generationMin: number } {
    return { floor: this.#checkpoint.ledgerId, generationMin: this.#checkpoint.generation };
  }

  /** Undefined for a store that was not moved, as far as is known. */
  get move(): CoordinatorError | undefined {
    const { movedTo } = this.#checkpoint;
    return movedTo === undefined ? undefined : refused("MOVED", movedTo, this.#namespace);
  }

  /** @throws CoordinatorError `namespace_moved`, also when the store itself has forgotten it. */
  assertNotMoved(): void {
    if (this.move !== undefined) throw this.move;
  }

  /**
   * Notes a move that the store answered with; every other error is left alone. On file before it is known here: after a failed write the next
   * step tries again. @throws CoordinatorError `checkpoint_unavailable`.
   */
  noteMove(error: unknown): void {
    const { movedTo } = error as CoordinatorError;
    if (movedTo === undefined) return;
    const moved = { ...this.#checkpoint, movedTo };
    this.#file.note(moved);
    this.#checkpoint = moved;
  }

  /**
   * Notes a verified step: at once here, and on file when this resolves. One write for all steps whose outcomes came in the same moment.
   * @throws CoordinatorError `checkpoint_unavailable`.
   */
  async noteStep(after: RecordAfter): Promise<void> {
    this.#checkpoint = { ...mergeCheckpoints(this.#checkpoint, checkpointOf(after)), nodeCount: after.nodeCount };
    this.#write ??= Promise.resolve().then(() => {
      this.#write = undefined;
      this.#file.note(this.#checkpoint);
    });
    await this.#write;
  }

  close(): void {
    this.#file.close();
  }
}
