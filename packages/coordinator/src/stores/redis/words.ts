/**
 * What a server of Redis says, as it may be told to others. Redis repeats the words of a command that it does not know, and so does
 * many a proxy: the command may have been the one that logs in. Pure.
 */

/** Redis's own, before the words that it repeats. */
const REPEATED_WORDS = /, with args beginning with.*$/s;
/** What we ourselves read of it, which no password may spoil. */
const READ_BY_US = /^(?:NOSCRIPT|NOPERM|ERR unknown command)/i;
/** Whoever repeats may also cut: so much of a password is enough to know it by. */
const KNOWN_BY_LENGTH = 8;

/** The text up to what it repeats of a command, and up to the password, also when that is escaped or cut. */
export function withoutRepeatedWords(text: string, password: string | undefined): string {
  const told = text.replace(REPEATED_WORDS, "");
  if (password === undefined || password === "") return told;
  const head = READ_BY_US.exec(told)?.[0] ?? "";
  const rest = told.slice(head.length);
  const at = rest.search(startOf(password));
  return at < 0 ? told : `${head}${rest.slice(0, at)}***`;
}

/** As it was typed, and as it stands in a URL and in JSON. */
function startOf(password: string): RegExp {
  const forms = [password, encodeURIComponent(password), JSON.stringify(password).slice(1, -1)];
  const starts = forms.map((form) => form.slice(0, KNOWN_BY_LENGTH).replace(/[^A-Za-z0-9]/g, "\\$&"));
  return new RegExp(starts.join("|"), "i");
}
