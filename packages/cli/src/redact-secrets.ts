/** Passwords in URLs and tokens, out of every message and log. Other secrets come from files and the environment, and appear nowhere. */

/** From the user's name to the last @: a password may contain anything. Also of a URL without its scheme, where a message quotes one. */
const LOGIN = /((?:\/\/|')[^:@/']*:).*(?=@)/s;
const PASSWORD_PARAMETER = /([?&][A-Za-z]*password=)[^&\s]*/gi;
/** Typed as an argument, which no command takes. */
const TOKEN = /cn_[\w-]{43}/g;

/** Replaces the passwords of URLs, and tokens, in a text by `***`. */
export function redactSecrets(text: string): string {
  return text.replace(LOGIN, "$1***").replace(PASSWORD_PARAMETER, "$1***").replace(TOKEN, "cn_***");
}
