/** `schemes`: the numbering schemes as commands, for a command line to mount. None needs a coordinator. */
import { Command } from "commander";
import { generateCommand } from "./generate.js";
import type { SchemesIo } from "./io.js";
import { listCommand } from "./list.js";
import { oddsCommand } from "./odds.js";
import { parseCommand } from "./parse.js";
import { planCommand } from "./plan.js";
import { simulateCommand } from "./simulate.js";

export type { SchemesIo } from "./io.js";

/** Creates `schemes` with its sub-commands, for one call. */
export function schemesCommand(io: SchemesIo): Command {
  const command = new Command("schemes").description(
    "Works with the numbering schemes that people choose in place of call numbers. Needs no coordinator.",
  );
  for (const create of [listCommand, parseCommand, generateCommand, oddsCommand, planCommand, simulateCommand]) {
    command.addCommand(create(io));
  }
  return command;
}
