/** Why a `fetch` was rejected, and what to change: the platform's own message names neither. */
import type { ClientErrorCode } from "@callnumber/protocol/http-api";

export interface FetchFailure {
  /** `coordinator_unreachable` when the same request may succeed later. */
  readonly code: ClientErrorCode;
  /** The cause; for every other code also the action. */
  readonly reason: string;
}

/** What no retry changes, by the platform's code. */
const LASTING: readonly (readonly [RegExp, ClientErrorCode, string])[] = [
  [
    /^(DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)_/,
    "certificate_rejected",
    "its certificate is from an unknown authority. Name the file of that authority in NODE_EXTRA_CA_CERTS",
  ],
  [/^CERT_HAS_EXPIRED/, "certificate_rejected", "its certificate has expired. Renew it"],
  [/^CERT_/, "certificate_rejected", "its certificate is not valid. Replace it"],
  [/ALTNAME/, "certificate_rejected", "its certificate is for another host name. Use that name in the URL"],
  [/^ERR_SSL_(WRONG_VERSION|PACKET_LENGTH)/, "answer_not_understood", "it does not speak TLS. Use http:// in the URL"],
  [/^HPE_/, "answer_not_understood", "it does not speak HTTP. Check the URL"],
];

/** What a server that expects TLS does with plain HTTP; one that ends does the same. */
const HANGS_UP = /^(UND_ERR_SOCKET|ECONNRESET|HPE_)/;

/** Why a request to `base` was rejected. `probe` sends one without content there, to learn whether that server expects TLS. */
export async function fetchFailure(
  base: string,
  error: unknown,
  probe: (url: string) => Promise<unknown>,
): Promise<FetchFailure> {
  const { code, message } = causeOf(error);
  if (base.startsWith("http:") && HANGS_UP.test(code)) {
    const url = base.replace("http", "https");
    const hasTls = await probe(url).then(
      () => true,
      (failed: unknown) => lasting(causeOf(failed).code)?.code === "certificate_rejected",
    );
    if (hasTls) return { code: "answer_not_understood", reason: "it speaks TLS. Use https:// in the URL" };
  }
  return lasting(code) ?? { code: "coordinator_unreachable", reason: message || code };
}

function lasting(platformCode: string): FetchFailure | undefined {
  const found = LASTING.find(([pattern]) => pattern.test(platformCode));
  return found && { code: found[1], reason: found[2] };
}

/** The platform says "fetch failed" and keeps the reason in the cause. */
function causeOf(error: unknown): { readonly code: string; readonly message: string } {
  const cause = ((error as { cause?: unknown } | undefined)?.cause ?? error) as NodeJS.ErrnoException | undefined;
  return { code: String(cause?.code ?? cause?.name), message: String(cause?.message ?? cause) };
}
