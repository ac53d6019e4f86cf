/** Why no coordinator answered, in words that say what to change: the platform's own name neither the variable nor the scheme. */

/** By the platform's code. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /^(DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)_/,
    "nobody known here has signed its certificate: name the file of its authority in NODE_EXTRA_CA_CERTS",
  ],
  [/^CERT_HAS_EXPIRED/, "its certificate has ended"],
  [/^ERR_TLS_CERT_ALTNAME/, "its certificate is for another host name"],
  [/^ERR_SSL_WRONG_VERSION/, "it does not speak TLS there: say http://"],
];

/** What is told of a `fetch` that rejected: the platform says "fetch failed" and keeps the reason in the cause. */
export function unreachableReason(base: string, error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  const code = String((cause as { code?: unknown }).code ?? cause.name);
  const known = REASONS.find(([pattern]) => pattern.test(code));
  if (known !== undefined) return known[1];
  const reason = cause.message || code;
  // Who speaks TLS hangs up on whoever does not.
  return code === "UND_ERR_SOCKET" && base.startsWith("http:") ? `${reason}; does it speak TLS? Say https://` : reason;
}
