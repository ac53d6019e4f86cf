/** `schemes`: the commands of packages/schemes, which print, fail and lock as all others do. */
import { schemesCommand as mountedCommand } from "@callnumber/schemes/commands";
import type { Command } from "commander";
import { holderOfLock, makeLockFile } from "../lock-file.js";
import { realPathOf } from "../platform/real-path.js";
import { escapeLines, withoutTokens } from "../text.js";
import { paintFor } from "./colours.js";
import { running } from "./command-io.js";
import { withoutPasswords } from "./hidden-passwords.js";
import { NOT_QUICK, pipeLines } from "./pipe-lines.js";
import { jsonLine, print, printJson, printPainted } from "./print.js";
import { terminalTable } from "./terminal-table.js";

export function schemesCommand(): Command {
  const call = running();
  return mountedCommand({
    call,
    print,
    printPainted,
    printError: (text) => void call.io.stderr.write(`${escapeLines(text)}\n`),
    printJson,
    jsonLine,
    paint: paintFor(false),
    table: (columns, rows) => terminalTable(columns).linesOf(rows).join("\n"),
    answerLines: (answer) => pipeLines({ quick: () => NOT_QUICK, answer: (line) => answer(withoutTokens(line)) }),
    withoutSecrets: (text) => withoutPasswords([text]).join(""),
    files: { realPathOf, makeLockFile, holderOfLock },
  });
}
