/**
 * The token that a request bears, as RFC 9110 and 6750 spell it. Read from the headers as they arrived: Node keeps the first of two
 * `Authorization` headers and drops the other, and a proxy in front may have judged by the other one. Pure.
 */
const BEARER = /^bearer +([^ ]+)$/i;

/** @param rawHeaders names and values in turn. Answers undefined when there is not exactly one token. */
export function bearerTokenIn(rawHeaders: readonly string[]): string | undefined {
  const values = rawHeaders.filter((_, index) => index % 2 === 1 && isAuthorization(rawHeaders[index - 1]));
  return values.length === 1 ? BEARER.exec(values[0] as string)?.[1] : undefined;
}

function isAuthorization(name: string | undefined): boolean {
  return name?.toLowerCase() === "authorization";
}
