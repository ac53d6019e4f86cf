/** The same things in a drawn order (Fisher and Yates). */
export function shuffled<T>(random: () => number, things: readonly T[]): T[] {
  const order = [...things];
  for (let left = order.length; left > 1; left--) {
    const drawn = Math.floor(random() * left);
    [order[left - 1], order[drawn]] = [order[drawn] as T, order[left - 1] as T];
  }
  return order;
}
