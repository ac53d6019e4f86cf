/** MAC addresses for machines: those that a hash tells apart, and those that it does not, found by drawing until there are. */
import type { Random } from "../mint-context.js";
import { nodeFromMacs } from "../node-from-macs.js";

/** As many values has the smallest field that takes a hash: machines that differ in these bits differ in every scheme. */
const TOLD_APART_MAX = 2n ** 10n;

/**
 * These addresses and others, one for each of `count` machines: no two of the others, nor one of them and one of these, have the same lowest
 * ten bits of the hash.
 * @param count less than 2^10.
 */
export function macsToldApart(count: number, random: Random, these: readonly string[] = []): readonly string[] {
  const macs = [...these];
  const taken = new Set(these.map(lowestBits));
  while (macs.length < count) {
    const mac = drawnMac(random);
    if (taken.has(lowestBits(mac))) continue;
    taken.add(lowestBits(mac));
    macs.push(mac);
  }
  return macs;
}

/** Two different addresses with one hash, in all its 32 bits. By the birthday, some 80,000 draws are enough. */
export function macsWithOneHash(random: Random): readonly [string, string] {
  const macByHash = new Map<bigint, string>();
  for (;;) {
    const mac = drawnMac(random);
    const hash = nodeFromMacs([mac]);
    const other = macByHash.get(hash);
    if (other !== undefined && other !== mac) return [other, mac];
    macByHash.set(hash, mac);
  }
}

function lowestBits(mac: string): bigint {
  return nodeFromMacs([mac]) % TOLD_APART_MAX;
}

/** Of a maker of network cards: neither a multicast address nor one that was set by hand, so the first byte is a multiple of 4. */
function drawnMac(random: Random): string {
  const bytes = [4 * random.below(64), ...Array.from({ length: 5 }, () => random.below(256))];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}
