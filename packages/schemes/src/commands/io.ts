/** What the command line that mounts these commands gives them, so that they print and fail as its own commands do. */

/** What these commands need from the command line that mounts them. */
export interface SchemesIo {
  /** The call of the command that is running. */
  readonly call: {
    exitCode: number;
    readonly io: { readonly stdout: { readonly isTTY?: boolean; readonly columns?: number } };
    /** Writes to standard output, and waits while its reader is behind. */
    write(text: string): Promise<void>;
    onSignal(name: string, listener: () => void): void;
    /** Calls `act` when the command ends, for any reason. */
    onEnd(act: () => void): unknown;
    /** Ends at once. */
    leave(exitCode: number): void;
  };
  /** Prints lines on standard output, escaping what would act on a terminal. The other functions escape as well. */
  print(text: string): void;
  /** As `print`, of text with colors by `paint`. */
  printPainted(text: string): void;
  /** As `print`, on standard error. */
  printError(text: string): void;
  /** Replaces the line of progress on a terminal of standard error; an empty text removes it. Elsewhere nothing is printed. */
  showProgress(text: string): void;
  printJson(value: unknown): void;
  /** JSON in one line. */
  jsonLine(value: unknown): string;
  /** The text in this style, where standard output has colors. */
  paint(style: Style, text: string): string;
  /** The lines of a table that fits the terminal, under a line of headings. */
  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string;
  /** Answers each line of standard input on standard output; a line for which `answer` throws, on standard error. */
  answerLines(answer: (line: string) => string): Promise<void>;
}

type Style = "bold" | "red";

export interface Column<Row> {
  readonly heading: string;
  readonly cellOf: (row: Row) => string | number;
  readonly styleOf?: (row: Row) => Style | undefined;
  /** It may be shortened down to so many characters; without it, never. */
  readonly shrinksTo?: number;
  /** Columns with a greater one are left out first; 0 is never left out. */
  readonly expendability: number;
}
