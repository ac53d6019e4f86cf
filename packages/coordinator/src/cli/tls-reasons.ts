/** Why a coordinator's certificate is not believed, and what helps: the platform's own words name neither file nor variable. */
const ADVICE = "name the file of its authority in NODE_EXTRA_CA_CERTS";

const REASONS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: `nobody known here has signed its certificate: ${ADVICE}`,
  SELF_SIGNED_CERT_IN_CHAIN: `nobody known here has signed its certificate: ${ADVICE}`,
  UNABLE_TO_GET_ISSUER_CERT: `nobody known here has signed its certificate: ${ADVICE}`,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: `nobody known here has signed its certificate: ${ADVICE}`,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: `nobody known here has signed its certificate: ${ADVICE}`,
  CERT_HAS_EXPIRED: "its certificate has ended",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS there: say http://",
};

/** Undefined for what is nothing about certificates. */
export function tlsReasonOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
}
