/** Draws one of several ways in which a fault can come about. */
export function oneOf<T>(random: () => number, ways: readonly T[]): T {
  return ways[Math.floor(random() * ways.length)] as T;
}
