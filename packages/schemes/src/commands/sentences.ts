/** Sentences beside a label, broken where the terminal ends. */
import type { SchemesIo } from "./io.js";

const WIDTH_MIN = 40;
/** Longer lines are hard to read. */
const WIDTH_MAX = 100;
const WIDTH_WITHOUT_TERMINAL = 80;
const INDENT = "  ";

/** `rows` of a label and its text, under each other; the texts begin in one column. All of it is ASCII: labels are our own. */
export function labelled(rows: readonly (readonly [label: string, text: string])[], width: number): readonly string[] {
  const labelWidth = Math.max(...rows.map(([label]) => label.length));
  const hanging = " ".repeat(INDENT.length + labelWidth + 2);
  return rows.flatMap(([label, text]) =>
    broken(text, width - hanging.length).map((line, index) =>
      (index === 0 ? `${INDENT}${label.padEnd(labelWidth)}  ${line}` : `${hanging}${line}`).trimEnd(),
    ),
  );
}

/** At spaces only: a number stays whole, however long it is. */
export function broken(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** How wide a line of words may be, here and now. */
export function lineWidth({ call }: SchemesIo): number {
  const { isTTY, columns } = call.io.stdout;
  const terminal = (isTTY ? columns : undefined) ?? WIDTH_WITHOUT_TERMINAL;
  return Math.min(Math.max(terminal, WIDTH_MIN), WIDTH_MAX);
}
