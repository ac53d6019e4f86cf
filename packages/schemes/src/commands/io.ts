/** What the program that mounts the commands gives them, so that they print, fail and lock as its own commands do. */

export interface SchemesIo {
  readonly call: RunningCall;
  /** A line or several on standard output. What somebody else chose does not act on a terminal; so with all that follow. */
  print(text: string): void;
  /** As `print`, of text with our own colors. */
  printPainted(text: string): void;
  /** As `print`, on standard error. */
  printError(text: string): void;
  printJson(value: unknown): void;
  /** JSON in one line. */
  jsonLine(value: unknown): string;
  /** The text in this style, where standard output has colors. */
  paint(style: Style, text: string): string;
  /** A table that fits the terminal: its lines, under a line of headings. */
  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string;
  /** Answers each line of standard input on standard output; a line for which `answer` throws, on standard error. */
  answerLines(answer: (line: string) => string): Promise<void>;
  readonly files: LockedFiles;
}

/** The call of the command that is running. */
export interface RunningCall {
  exitCode: number;
  readonly io: {
    readonly stdout: { readonly isTTY?: boolean; readonly columns?: number };
    readonly stderr: { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown };
  };
  /** Writes to standard output, and waits while its reader is behind. */
  write(text: string): Promise<void>;
  onSignal(name: string, listener: () => void): void;
  /** Calls `act` when the command ends, however it ends. */
  onEnd(act: () => void): unknown;
  /** Ends at once, whatever is going on. */
  leave(exitCode: number): void;
}

/** A lock is a file's name: two processes that mean one file must come to one name. */
export interface LockedFiles {
  /** Absolute and without links. @throws Error with code `link_leads_nowhere` for a link whose target is not there. */
  realPathOf(path: string): string;
  /** Makes the file; false when it is there already. @throws the system's error. */
  makeLockFile(path: string): boolean;
  /** Who made it, in words. */
  holderOfLock(path: string): string;
}

type Style = "bold" | "red";

export interface Column<Row> {
  readonly heading: string;
  readonly cellOf: (row: Row) => string | number;
  readonly styleOf?: (row: Row) => Style | undefined;
  /** Down to so many characters it may be shortened; without it it never is. */
  readonly shrinksTo?: number;
  /** Columns with a greater one are left out first; 0 is never left out. */
  readonly expendability: number;
}
