/** A token that was put where something else belongs, such as its file's name, is not repeated. Also one that was cut. */
const TOKENS_IN_TEXT = /cn_[A-Za-z0-9_-]{20,}/gi;

export function withoutTokens(text: string): string {
  return text.replace(TOKENS_IN_TEXT, "cn_(token)");
}
