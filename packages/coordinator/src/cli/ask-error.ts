/** A question that got no answer, with the code that says why. */
export class AskError extends Error {
  override readonly name = "AskError";

  constructor(
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
