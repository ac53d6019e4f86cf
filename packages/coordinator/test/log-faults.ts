/** What must never stand in a log: secrets, characters that act on a terminal, lines without end, lines that are no lines of ours. */

const LINE_LENGTH_MAX = 4_096;
/** All that moves, hides or turns text; a line break ends a line of ours and stands nowhere else. */
const UNPRINTABLE = /[^\P{C}\n]|[\p{Zl}\p{Zp}]/u;

export function faultsOfLog(text: string, secrets: readonly string[]): readonly string[] {
  const faults: string[] = [];
  for (const secret of secrets) if (text.includes(secret)) faults.push("a secret stands in the log");
  const [wrong] = UNPRINTABLE.exec(text) ?? [];
  if (wrong !== undefined) faults.push(`U+${wrong.codePointAt(0)?.toString(16)} stands in the log`);
  for (const line of text.split("\n")) {
    if (line.length > LINE_LENGTH_MAX) faults.push(`a line of the log has ${line.length} characters`);
    if (line.startsWith("{") && !isJson(line)) faults.push("a line of the log is no JSON");
  }
  return faults;
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
