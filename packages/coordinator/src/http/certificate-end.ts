/** How near a certificate's end is: from when on somebody should hear of it, and in which words. Pure. */

const DAY_MS = 24 * 3_600_000;
/** So long before its end a certificate is warned of. */
const WARNING_MS = 14 * DAY_MS;

/** As it stands in the log. */
export interface CertificateEnd {
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
