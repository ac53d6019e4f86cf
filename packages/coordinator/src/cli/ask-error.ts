/** A question that got no answer, with the code that says why. Both may be what another machine said. */
import { escapeAndShorten, MESSAGE_LENGTH_MAX } from "../text.js";

export class AskError extends Error {
  override readonly name = "AskError";

  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(escapeAndShorten(message, MESSAGE_LENGTH_MAX), options);
    this.code = escapeAndShorten(code);
  }
}
