/** A table for standard output as it is: as wide as the terminal, coloured only there. */
import { stdout } from "node:process";
import { paintFor } from "./colours.js";
import { type Column, Table } from "./table.js";

export function terminalTable<Row>(columns: readonly Column<Row>[]): Table<Row> {
  const terminalWidth = () => (stdout.isTTY ? stdout.columns : undefined);
  return new Table(columns, { paint: paintFor(false), terminalWidth });
}
