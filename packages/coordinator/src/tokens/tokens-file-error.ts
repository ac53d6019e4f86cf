/** A tokens file that can't be used, and why. Never holds what stands in the file. */
export class TokensFileError extends Error {
  override readonly name = "TokensFileError";
  readonly code = "tokens_file_unusable";
}
