/** Whose slots a request takes: no client has more of them by having more addresses. */
import { expect, test } from "vitest";
import { UNRESTRICTED } from "../src/http/auth.js";
import { clientKey } from "../src/http/in-flight-limits.js";

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
])("a client without a token at %j has the key %j", (ip, key) => {
  expect(clientKey({ principal: UNRESTRICTED, ip })).toBe(key);
});

test("a client with a token has one key, wherever it comes from", () => {
  expect(clientKey({ principal: { ...UNRESTRICTED, tokenId: "5e884898" }, ip: "192.0.2.1" })).toBe("5e884898");
});
