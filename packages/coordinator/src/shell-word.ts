/** A word of a command that somebody may copy into a shell. Strangers choose names: one that is `$(…)` must stay a name. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
