/** Whose share a request takes: nobody has more of them by having more addresses. */
import { expect, test } from "vitest";
import { askerOf, networkOf } from "../src/http/asker.js";
import { ANYBODY } from "../src/http/caller.js";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::9", "2001:db8:1:2::/64"],
  ["2001:db8::9", "2001:db8:0:0::/64"],
  ["2001:db8:0:1::", "2001:db8:0:1::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["", ""],
])("%j is of the network %j", (address, network) => expect(networkOf(address)).toBe(network));

test("a token is one asker from wherever it comes; without one it is the network", () => {
  expect(askerOf({ caller: { ...ANYBODY, tokenId: "5e884898" }, ip: "192.0.2.1" })).toBe("5e884898");
  expect(askerOf({ caller: ANYBODY, ip: "192.0.2.1" })).toBe("192.0.2.1");
});
