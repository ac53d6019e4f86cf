/** Why no number could be made. The codes are a closed list and stable; the text is for people. */
export type SchemeErrorCode = "clock_went_back" | "space_used_up";

export class SchemeError extends Error {
  override readonly name = "SchemeError";
  readonly code: SchemeErrorCode;

  constructor(code: SchemeErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
