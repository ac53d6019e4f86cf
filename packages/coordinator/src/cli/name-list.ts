/** The value of a flag that takes several names: with spaces or commas between them, each once. */

/** `find` throws a RangeError for a name that it does not know. */
export function nameList<T>(find: (name: string) => T): (text: string, before?: readonly T[]) => readonly T[] {
  return (text, before = []) => {
    const named = text
      .split(",")
      .filter((name) => name !== "")
      .map(find);
    return [...new Set([...before, ...named])];
  };
}
