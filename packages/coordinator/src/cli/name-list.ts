/** The value of a flag that takes several names: with spaces or commas between them, each once. */

/** `find` throws a RangeError for a name that it does not know; so does a list without any. */
export function nameList<T>(find: (name: string) => T): (text: string, before?: readonly T[]) => readonly T[] {
  return (text, before = []) => {
    const named = text
      .split(",")
      .filter((name) => name !== "")
      .map(find);
    if (named.length === 0) throw new RangeError("must be at least one name");
    return [...new Set([...before, ...named])];
  };
}
