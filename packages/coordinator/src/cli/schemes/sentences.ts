/** Sentences beside a label, broken where the terminal ends. */
import { commandIo } from "../command-io.js";
import { widthOf } from "../text-width.js";

const WIDTH_MIN = 40;
/** Longer lines are hard to read. */
const WIDTH_MAX = 100;
const WIDTH_WITHOUT_TERMINAL = 80;
const INDENT = "  ";

/** `rows` of a label and its text, under each other; the texts begin in one column. */
export function labelled(rows: readonly (readonly [label: string, text: string])[]): readonly string[] {
  const labelWidth = Math.max(...rows.map(([label]) => widthOf(label)));
  return rows.flatMap(([label, text]) => {
    const blank = " ".repeat(labelWidth - widthOf(label));
    const hanging = " ".repeat(INDENT.length + labelWidth + 2);
    const lines = broken(text, lineWidth() - hanging.length);
    return lines.map((line, index) =>
      (index === 0 ? `${INDENT}${label}${blank}  ${line}` : `${hanging}${line}`).trimEnd(),
    );
  });
}

/** At spaces only: a number stays whole, however long it is. */
export function broken(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** How wide a line of words may be, here and now. */
export function lineWidth(): number {
  const { isTTY, columns } = commandIo().stdout;
  const terminal = (isTTY ? columns : undefined) ?? WIDTH_WITHOUT_TERMINAL;
  return Math.min(Math.max(terminal, WIDTH_MIN), WIDTH_MAX);
}
