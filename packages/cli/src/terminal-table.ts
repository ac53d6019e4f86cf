/** A table for standard output as it is: as wide as the terminal, coloured only there. */
import { paintFor } from "./colours.js";
import { commandIo } from "./command-io.js";
import { type Column, Table } from "./table.js";

export function terminalTable<Row>(columns: readonly Column<Row>[]): Table<Row> {
  const { stdout } = commandIo();
  const terminalWidth = () => (stdout.isTTY ? stdout.columns : undefined);
  return new Table(columns, { paint: paintFor(false), terminalWidth });
}
