/** What the platform's `fetch` leaves to its caller: a bound for the body, and why a request failed and what to change. */
import type { ClientErrorCode } from "@callnumber/protocol/api";

export interface FetchFailure {
  /** `coordinator_unreachable` when the same request may succeed later. */
  readonly code: ClientErrorCode;
  /** The cause; for every other code also the action. */
  readonly reason: string;
}

/** Failures that no retry fixes, by the platform's code. */
const LASTING: readonly (readonly [RegExp, ClientErrorCode, string])[] = [
  [
    /^(DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)_/,
    "certificate_rejected",
    "its certificate is from an unknown authority. Name the file of that authority in NODE_EXTRA_CA_CERTS",
  ],
  [/^CERT_HAS_EXPIRED/, "certificate_rejected", "its certificate has expired. Renew it"],
  [/^CERT_/, "certificate_rejected", "its certificate is not valid. Replace it"],
  [/ALTNAME/, "certificate_rejected", "its certificate is for another host name. Use that name in the URL"],
  [/^ERR_SSL_(WRONG_VERSION|PACKET_LENGTH)/, "invalid_response", "it does not speak TLS. Use http:// in the URL"],
  // Since Node 24 such an error has no code, only a name.
  [/^(HPE_|HTTPParserError)/, "invalid_response", "it does not speak HTTP. Check the URL"],
];

/** How a server that expects TLS fails with plain HTTP; a server that stops fails the same way. */
const HANGS_UP = /^(UND_ERR_SOCKET|ECONNRESET|HPE_|HTTPParserError)/;

/** Returns why a request to `base` failed. `probe` sends a request without a body, which shows whether that server expects TLS. */
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
    if (hasTls) return { code: "invalid_response", reason: "it speaks TLS. Use https:// in the URL" };
  }
  return lasting(code) ?? { code: "coordinator_unreachable", reason: message || code };
}

function lasting(platformCode: string): FetchFailure | undefined {
  const found = LASTING.find(([pattern]) => pattern.test(platformCode));
  return found && { code: found[1], reason: found[2] };
}

/** The message of the platform is "fetch failed", and the reason is in its cause. */
function causeOf(error: unknown): { readonly code: string; readonly message: string } {
  const cause = ((error as { cause?: unknown } | undefined)?.cause ?? error) as NodeJS.ErrnoException | undefined;
  return { code: String(cause?.code ?? cause?.name), message: String(cause?.message ?? cause) };
}

/**
 * Returns the body of `response` as text; undefined when it has more than `bytesMax` bytes, uncompressed. Then the connection is closed,
 * because any server may send without end. Rejects as the body does.
 */
export async function boundedText(response: Response, bytesMax: number): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  // Leaving the loop closes the connection.
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    if (bytes > bytesMax) return undefined;
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}
