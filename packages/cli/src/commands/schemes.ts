/** `schemes`: the commands of packages/schemes, which print and fail as all others do. */
import { escapeLines } from "@callnumber/coordinator/internal/text";
import { schemesCommand } from "@callnumber/schemes/commands";
import type { Command } from "commander";
import { answerLines } from "../input.js";
import { invocation } from "../invocation.js";
import { jsonLine, paintFor, print, printJson, printPainted } from "../output.js";
import { terminalTable } from "../table.js";

/** Moves the cursor there, and erases the line. */
const START_OF_LINE = "\r\u001b[K";

export function makeCommand(): Command {
  const call = invocation();
  return schemesCommand({
    call,
    print,
    printPainted,
    printError: (text) => void call.io.stderr.write(`${escapeLines(text)}\n`),
    showProgress: (text) => {
      if (call.io.stderr.isTTY) call.io.stderr.write(`${START_OF_LINE}${escapeLines(text)}`);
    },
    printJson,
    jsonLine,
    paint: paintFor(),
    table: terminalTable,
    answerLines,
  });
}
