/** The commands in what this process prints, filled in with the store and the witness folder that it was called with. */
import { type CommandContext, filledCommands } from "@callnumber/protocol/operator";

let context: CommandContext | undefined;

export function keepCommandContext(found: CommandContext): void {
  context = found;
}

export function filled(text: string): string {
  return context === undefined ? text : filledCommands(text, context);
}
