/** Warns of a TLS certificate that expires soon: `serve` at its start and in its log, `doctor` as a finding. */

const DAY_MS = 24 * 3_600_000;
/** Warnings begin so long before a certificate expires. */
const WARNING_MS = 14 * DAY_MS;

export interface CertificateExpiry {
  readonly endsAt: string;
  /** Whole days; 0 on the last one, and after it. */
  readonly daysLeft: number;
  readonly isExpired: boolean;
  /** For people. */
  readonly description: string;
}

/** Returns when a certificate expires; undefined while that is more than 14 days away. */
export function nearExpiry(endsAtMs: number, nowMs = Date.now()): CertificateExpiry | undefined {
  const leftMs = endsAtMs - nowMs;
  if (leftMs > WARNING_MS) return undefined;
  const endsAt = new Date(endsAtMs).toISOString();
  const daysLeft = Math.max(0, Math.floor(leftMs / DAY_MS));
  const left = daysLeft === 0 ? "in less than a day" : daysLeft === 1 ? "in 1 day" : `in ${daysLeft} days`;
  const isExpired = leftMs <= 0;
  const description = isExpired
    ? `The TLS certificate expired on ${endsAt}: clients that verify it no longer connect`
    : `The TLS certificate expires ${left}, on ${endsAt}: renew it`;
  return { endsAt, daysLeft, isExpired, description };
}
