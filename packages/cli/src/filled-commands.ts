/** The commands in what a command prints, filled in with the store and the witness folder that it was called with. */
import { filledCommands } from "@callnumber/protocol/operator";
import { invocation } from "./command-io.js";

export function filled(text: string): string {
  const context = invocation()?.context;
  return context === undefined ? text : filledCommands(text, context);
}
