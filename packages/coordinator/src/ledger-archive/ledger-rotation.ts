/** Rotates the ledgers of all namespaces: once at the start, and then each minute. What goes wrong is told, and tried again. */
import { CoordinatorError } from "../errors.js";
import { NamespaceRotation, type RotationOptions } from "./namespace-rotation.js";

export interface LedgerRotationOptions extends RotationOptions {
  /** How often it looks, ms. Default 60,000. */
  readonly everyMs?: number;
}

const EVERY_MS = 60_000;

export class LedgerRotation {
  readonly #options: LedgerRotationOptions;
  readonly #rotations = new Map<string, NamespaceRotation>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #underWay: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: LedgerRotationOptions) {
    this.#options = options;
  }

  start(): void {
    const look = () => {
      this.#underWay ??= this.rotateAll().finally(() => {
        this.#underWay = undefined;
      });
    };
    this.#timer ??= setInterval(look, this.#options.everyMs ?? EVERY_MS);
    look();
  }

  /** Ends with the file under way. The store is the caller's to close. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#isStopped = true;
    await this.#underWay;
  }

  /** Rotates what is due, in one namespace after the other. Never rejects for what the outside world does: it is told in the log. */
  async rotateAll(): Promise<void> {
    let namespaces: readonly string[] = [];
    try {
      namespaces = await this.#options.store.listNamespaces();
    } catch (error) {
      this.#tell(undefined, error);
    }
    for (const namespace of namespaces) {
      const rotation = this.#rotations.get(namespace) ?? new NamespaceRotation(namespace, this.#options);
      this.#rotations.set(namespace, rotation);
      try {
        await rotation.rotate(() => this.#isStopped);
      } catch (error) {
        this.#tell(namespace, error);
      }
    }
  }

  #tell(namespace: string | undefined, error: unknown): void {
    const { code, message, syscall } = error as NodeJS.ErrnoException;
    if (!(error instanceof CoordinatorError) && syscall === undefined) throw error;
    this.#options.log.warn({ namespace, code, reason: message }, "rotation_failed");
  }
}
