/**
 * New TLS files while the server runs: looked for every few seconds and when asked, used when they are whole, else the old ones stay.
 * A certificate and its key are two files and change one after the other: what does not fit is given until the next look.
 */
import { statSync } from "node:fs";
import type { Log } from "../log.js";
import { nearEnd } from "./certificate-end.js";
import { readTlsMaterial, type TlsMaterial, type TlsPaths } from "./tls-files.js";

const LOOK_EVERY_MS = 5_000;
/** So often a certificate is warned of that ends soon, or has ended. */
const WARN_EVERY_MS = 24 * 3_600_000;

export interface TlsReloadOptions {
  readonly paths: TlsPaths;
  /** The files as they are in use. */
  readonly material: TlsMaterial;
  /** Where new ones go. */
  readonly use: (material: TlsMaterial) => void;
  readonly log: Log;
  /** Milliseconds; default 5,000. */
  readonly everyMs?: number;
  readonly now?: () => number;
}

export class TlsReload {
  readonly #options: TlsReloadOptions;
  readonly #now: () => number;
  #material: TlsMaterial;
  #timer: NodeJS.Timeout | undefined;
  /** How the files looked when they were last taken or given up. */
  #judged: string;
  /** How they looked at the last look. */
  #seen: string;
  #warnedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether its end was told, and not only that it comes. */
  #isEndTold = false;

  constructor(options: TlsReloadOptions) {
    this.#options = options;
    this.#material = options.material;
    this.#now = options.now ?? Date.now;
    // As if never looked at: they may have changed between their first reading and now.
    this.#judged = "";
    this.#seen = "";
  }

  start(): void {
    this.#look({ isAsked: false });
    this.#timer = setInterval(() => this.#look({ isAsked: false }), this.#options.everyMs ?? LOOK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Reads them now. Whoever asks says that they are whole: what does not fit is told at once. */
  reload(): void {
    this.#look({ isAsked: true });
  }

  #look({ isAsked }: { readonly isAsked: boolean }): void {
    const { paths, log } = this.#options;
    const stamp = stampOf(paths);
    const isSettled = isAsked || stamp === this.#seen;
    this.#seen = stamp;
    if (isAsked || stamp !== this.#judged) {
      try {
        const material = readTlsMaterial(paths, this.#now());
        // Changed while it was read: the next look sees the whole of it.
        if (stampOf(paths) !== stamp) return;
        this.#judged = stamp;
        if (isAsked || !isSame(material, this.#material)) this.#use(material);
      } catch (error) {
        if (!isSettled) return;
        this.#judged = stamp;
        log.error(
          { reason: (error as Error).message, endsAt: instant(this.#material.endsAtMs) },
          "certificate_not_reloaded",
        );
      }
    }
    this.#warn();
  }

  #use(material: TlsMaterial): void {
    const { use, log } = this.#options;
    use(material);
    this.#material = material;
    this.#warnedAtMs = Number.NEGATIVE_INFINITY;
    this.#isEndTold = false;
    log.info({ endsAt: instant(material.endsAtMs) }, "certificate_reloaded");
  }

  #warn(): void {
    const { log } = this.#options;
    const now = this.#now();
    const end = nearEnd(this.#material.endsAtMs, now);
    if (end === undefined) return;
    const { isEnded, endsAt, daysLeft } = end;
    const isNew = isEnded && !this.#isEndTold;
    if (!isNew && Math.abs(now - this.#warnedAtMs) < WARN_EVERY_MS) return;
    this.#warnedAtMs = now;
    this.#isEndTold = isEnded;
    if (isEnded) log.error({ endsAt }, "certificate_ended");
    else log.warn({ endsAt, daysLeft }, "certificate_ends_soon");
  }
}

/** Another one for every change: a new file under the name, new content, a new mode. */
function stampOf({ certificate, key, clientCa }: TlsPaths): string {
  const files = [certificate, key, ...(clientCa === undefined ? [] : [clientCa])];
  return files.map(stampOfFile).join(" ");
}

/** A file that can't be looked at has the reason as its stamp: reading it fails by the same, and that is told. */
function stampOfFile(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(":");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "none";
  }
}

function isSame(one: TlsMaterial, other: TlsMaterial): boolean {
  return one.certificate === other.certificate && one.key === other.key && one.clientCa === other.clientCa;
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
