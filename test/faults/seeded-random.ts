/** Random numbers that come again with the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The same as whole numbers from 0 to before `below`. */
export function seededBelow(seed: number): (below: number) => number {
  const random = seededRandom(seed);
  return (below) => Math.floor(random() * below);
}

/** Draws one of several ways in which a fault can come about. */
export function oneOf<T>(random: () => number, ways: readonly T[]): T {
  return ways[Math.floor(random() * ways.length)] as T;
}
