/** A question that got no answer, with the code that says why. Both may be what another machine said. */
import { MESSAGE_LENGTH_MAX, shown } from "../safe-text.js";

export class AskError extends Error {
  override readonly name = "AskError";

  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(shown(message, MESSAGE_LENGTH_MAX), options);
    this.code = shown(code);
  }
}
