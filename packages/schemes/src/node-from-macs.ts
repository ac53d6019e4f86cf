/** The number that a machine takes from its own MAC addresses. 1,024 nodes of it are fewer than they look: 38 machines repeat one more often than not. */

/**
 * Java's `hashCode` of all addresses in upper-case hex without separators, one after the other, as 32 unsigned bits; the field takes the lowest.
 * @throws RangeError where there is no address, or one is none.
 */
export function nodeFromMacs(macs: readonly string[]): bigint {
  if (macs.length === 0) throw new RangeError("a machine without a MAC address has no node number");
  const wrong = macs.find((mac) => !MAC.test(mac));
  if (wrong !== undefined) throw new RangeError("a MAC address must be written as de:ad:be:ef:00:01");
  const text = macs.map((mac) => mac.replaceAll(":", "").toUpperCase()).join("");
  let hash = 0;
  for (let index = 0; index < text.length; index++) hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0;
  return BigInt(hash >>> 0);
}

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;
