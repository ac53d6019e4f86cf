/**
 * Whose share of the places a request takes: that of its token, else that of the network it comes from. Addresses are cheap where a network has
 * more of them than anybody could count: the 2^64 of an IPv6 network, which is what one customer gets at least, are one asker. Pure.
 */
import { isIPv6 } from "node:net";
import type { FastifyRequest } from "fastify";
import type { Caller } from "./caller.js";

const IPV4_WITHIN_IPV6 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const GROUPS_OF_ADDRESS = 8;
const GROUPS_OF_NETWORK = 4;

/** Before it is known who asks: the network. */
export function askerOf({ caller, ip }: Pick<FastifyRequest, "caller" | "ip">): string {
  // Of a connection that is gone nothing is known.
  return (caller as Caller | null)?.tokenId ?? networkOf(ip ?? "");
}

/** An IPv4 address as it is, the first 64 bits of an IPv6 address; of what is none, all of it. */
export function networkOf(address: string): string {
  const [, ipv4] = IPV4_WITHIN_IPV6.exec(address) ?? [];
  if (ipv4 !== undefined) return ipv4;
  if (!isIPv6(address)) return address;
  const [front = [], back = []] = address.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: GROUPS_OF_ADDRESS - front.length - back.length }, () => "0");
  return `${[...front, ...zeros, ...back].slice(0, GROUPS_OF_NETWORK).join(":")}::/64`;
}
