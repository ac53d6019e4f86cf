/**
 * New TLS files while the server runs: checked every few seconds and on request, used when they are whole, else the old ones stay. A
 * certificate and its key are two files and change one after the other, so a pair that does not fit is checked once more before it is reported.
 * And warnings before a certificate expires.
 */
import { statSync } from "node:fs";
import type { Log } from "../log.js";
import { readTlsMaterial, type TlsMaterial, type TlsPaths } from "./tls-files.js";

const CHECK_EVERY_MS = 5_000;
const DAY_MS = 24 * 3_600_000;
/** Warnings begin so long before a certificate expires. */
const WARNING_MS = 14 * DAY_MS;
const WARN_EVERY_MS = DAY_MS;

export interface TlsReloadOptions {
  readonly paths: TlsPaths;
  /** The files in use. */
  readonly material: TlsMaterial;
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
  /** Stamp of the files when they were last used or given up. Empty at first: they may have changed since they were read. */
  #decidedStamp = "";
  /** Stamp at the last check. */
  #seenStamp = "";
  #warnedAtMs = Number.NEGATIVE_INFINITY;
  #isEndReported = false;

  constructor(options: TlsReloadOptions) {
    this.#options = options;
    this.#material = options.material;
    this.#now = options.now ?? Date.now;
  }

  start(): void {
    this.#check({ isRequested: false });
    this.#timer = setInterval(() => this.#check({ isRequested: false }), this.#options.everyMs ?? CHECK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Reads the files now. The caller knows that they are whole, so files that don't fit are reported at once. */
  reload(): void {
    this.#check({ isRequested: true });
  }

  #check({ isRequested }: { readonly isRequested: boolean }): void {
    const { paths, log } = this.#options;
    const stamp = stampOf(paths);
    const isStable = isRequested || stamp === this.#seenStamp;
    this.#seenStamp = stamp;
    if (isRequested || stamp !== this.#decidedStamp) {
      try {
        const material = readTlsMaterial(paths, this.#now());
        // Changed while it was read: the next check sees the whole of it.
        if (stampOf(paths) !== stamp) return;
        this.#decidedStamp = stamp;
        if (isRequested || !isSame(material, this.#material)) this.#use(material);
      } catch (error) {
        if (!isStable) return;
        this.#decidedStamp = stamp;
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
    this.#isEndReported = false;
    log.info({ endsAt: instant(material.endsAtMs) }, "certificate_reloaded");
  }

  #warn(): void {
    const { log } = this.#options;
    const now = this.#now();
    const end = nearEnd(this.#material.endsAtMs, now);
    if (end === undefined) return;
    const { isEnded, endsAt, daysLeft } = end;
    const isNew = isEnded && !this.#isEndReported;
    if (!isNew && Math.abs(now - this.#warnedAtMs) < WARN_EVERY_MS) return;
    this.#warnedAtMs = now;
    this.#isEndReported = isEnded;
    if (isEnded) log.error({ endsAt }, "certificate_ended");
    else log.warn({ endsAt, daysLeft }, "certificate_ends_soon");
  }
}

/** Another one for every change: a new file under the name, new content, a new mode. */
function stampOf({ certificate, key, clientCa }: TlsPaths): string {
  const files = [certificate, key, ...(clientCa === undefined ? [] : [clientCa])];
  return files.map(stampOfFile).join(" ");
}

/** A file that can't be inspected has the reason as its stamp: reading it fails by the same, and that is reported. */
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

/** As it stands in the log. */
interface CertificateEnd {
  readonly endsAt: string;
  /** Whole days; 0 on the last one, and after it. */
  readonly daysLeft: number;
  readonly isEnded: boolean;
}

/** Undefined while nobody needs to hear of it: more than 14 days before. */
export function nearEnd(endsAtMs: number, nowMs: number): CertificateEnd | undefined {
  const leftMs = endsAtMs - nowMs;
  if (leftMs > WARNING_MS) return undefined;
  const daysLeft = Math.max(0, Math.floor(leftMs / DAY_MS));
  return { endsAt: new Date(endsAtMs).toISOString(), daysLeft, isEnded: leftMs <= 0 };
}

/** For people. */
export function endInWords({ endsAt, daysLeft, isEnded }: CertificateEnd): string {
  if (isEnded) return `THE TLS CERTIFICATE HAS ENDED on ${endsAt}: nobody who looks at it connects any more`;
  const left = daysLeft === 0 ? "in less than a day" : daysLeft === 1 ? "in 1 day" : `in ${daysLeft} days`;
  return `the TLS certificate ends ${left}, on ${endsAt}: renew it`;
}
