/** Untrusted text in output: nothing acts on a terminal, and JSON means the same. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import { CoordinatorError } from "../src/errors.js";
import { asStoreError } from "../src/stores/redis/errors.js";
import { infoReader } from "../src/stores/redis/findings.js";
import { escapeAndShorten, escapeForTerminal, escapeJson, escapeLines } from "../src/text.js";

const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;
const anyText = fc.string({ unit: anyCharacter, maxLength: 40 });
const property = fc.property(anyText, (text) => {
  expect(escapeForTerminal(text)).not.toMatch(UNPRINTABLE);
  expect(escapeAndShorten(text, 9)).not.toMatch(UNPRINTABLE);
  expect(escapeLines(text).replace(/[\n\t]/g, "")).not.toMatch(UNPRINTABLE);
  expect(escapeForTerminal(escapeForTerminal(text))).toBe(escapeForTerminal(text));
});

test("text is escaped where a character acts, hides or reverses, and stays as it is otherwise", () => {
  fc.assert(property);
  expect(escapeForTerminal("a\u001b[2J\nb\u{e0041}")).toBe("a\\u{1b}[2J\\u{a}b\\u{e0041}");
  expect(escapeLines("a\tb\nc\r\u2028")).toBe("a\tb\nc\\u{d}\\u{2028}");
  expect(escapeForTerminal("Grüße 書架 🎈 ~")).toBe("Grüße 書架 🎈 ~");
  expect(escapeAndShorten("x".repeat(8_000_000))).toHaveLength(513);
});

test("text of stores and servers is escaped in errors, causes and findings", () => {
  const said = `ERR \u001b[2J\n${"x".repeat(8_000_000)}`;
  expect(new CoordinatorError("store_corrupt", said).message).toMatch(/^ERR \\u\{1b\}\[2J\\u\{a\}x+…$/);
  const error = asStoreError(new Error(said), "main", "h:1");
  expect((error.cause as Error).message).toHaveLength(522);
  expect((error.cause as Error).message).not.toMatch(UNPRINTABLE);
  const info = infoReader(`redis_version:${said}`);
  expect(info("redis_version")).toBe("ERR \\u{1b}[2J");
});

test("escaped JSON means the same", () => {
  const text = fc.string({ unit: anyCharacter });
  const values = [text, fc.integer(), fc.boolean(), fc.constant(null)];
  const both = fc.property(fc.anything({ key: text, values }), (value) => {
    const json = escapeJson(JSON.stringify(value, null, 2));
    expect(json.replaceAll("\n", "")).not.toMatch(UNPRINTABLE);
    expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
  });
  fc.assert(both);
});
