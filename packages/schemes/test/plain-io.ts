/** What a command line gives the commands of schemes, as plain as it can be: no terminal, no colors, tables without a width. */
import { holderOfLock, makeLockFile } from "../../coordinator/dist/lock-file.js";
import { realPathOf } from "../../coordinator/dist/platform/real-path.js";
import type { Column, LockedFiles, SchemesIo } from "../src/commands/io.js";

export const FILES: LockedFiles = { realPathOf, makeLockFile, holderOfLock };

export function plainIo(): SchemesIo {
  return {
    call: {
      exitCode: 0,
      io: { stdout: {}, stderr: { write: () => {} } },
      write: async () => {},
      onSignal: () => {},
      onEnd: () => {},
      leave: () => {},
    },
    print: () => {},
    printPainted: () => {},
    printError: () => {},
    printJson: () => {},
    jsonLine: (value) => JSON.stringify(value),
    paint: (_style, text) => text,
    table: plainTable,
    answerLines: async () => {},
    withoutSecrets: (text) => text,
    files: FILES,
  };
}

function plainTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const cells = [
    columns.map(({ heading }) => heading),
    ...rows.map((row) => columns.map(({ cellOf }) => String(cellOf(row)))),
  ];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => (line[at] ?? "").length)));
  return cells
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
