/** Passwords in URLs, out of every message and log. Other secrets come from files and the environment, and appear nowhere. */

/** From the user's name to the last @: a password may contain anything. Also of a URL without its scheme, where a message quotes one. */
const LOGIN = /((?:\/\/|')[^:@/']*:).*(?=@)/s;
const PASSWORD_PARAMETER = /([?&][A-Za-z]*password=)[^&\s]*/gi;

/** Replaces the passwords of URLs in a text by `***`. */
export function redactUrl(text: string): string {
  return text.replace(LOGIN, "$1***").replace(PASSWORD_PARAMETER, "$1***");
}
