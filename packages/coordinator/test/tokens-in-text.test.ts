/** A token where it does not belong: what is written down of it, and which names are taken for one. */
import { describe, expect, test } from "vitest";
import { holdsToken, withoutTokens } from "../src/text.js";
import { newToken } from "../src/tokens/token.js";

/** Every character as an address may escape it. */
const escaped = (text: string) => text.replace(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`);

describe("a token", () => {
  const token = newToken();
  test("is nowhere in a text that went through withoutTokens, also when it was cut there", () => {
    const text = withoutTokens(`GET /x?token=${token}&again=${token.slice(0, 30)} in namespace cn_mail-archive`);
    expect(text).toBe("GET /x?token=cn_(token)&again=cn_(token) in namespace cn_mail-archive");
  });

  test.each([
    ["with an escaped prefix", token.replace("_", "%5F")],
    ["with one in small letters", token.replace("_", "%5f")],
    ["that was escaped twice", token.replace("_", "%255F")],
    ["that is escaped whole", escaped(token)],
    ["with a prefix in capitals", token.replace("cn", "CN")],
  ])("%s is not there either, and is none for a name", (_, form) => {
    expect(withoutTokens(`/v1/namespaces/main/call-numbers/${form}?x`)).toBe(
      "/v1/namespaces/main/call-numbers/cn_(token)?x",
    );
    expect(holdsToken(`importer ${form}`)).toBe(true);
  });
});

test("a name holds a token when it holds so much of one that the rest could be guessed", () => {
  const token = newToken();
  for (const name of [token, `x${token}`, `for ${token}!`, token.slice(0, 35)]) expect(holdsToken(name)).toBe(true);
  for (const name of ["cn_mail-archive", "vcn_production_importer_eu_west_1", "cn", token.slice(0, 34), token.slice(3)])
    expect(holdsToken(name)).toBe(false);
});
