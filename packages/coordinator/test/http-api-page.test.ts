/** The tables of docs/reference/http-api.md say what `/openapi.json` says, row by row. */
import { readFileSync } from "node:fs";
import { INSTANT_MAX_MS } from "@callnumber/protocol/api";
import { expect, test } from "vitest";
import { type Field, operations, schemas } from "./described-api.js";

const page = readFileSync(new URL("../../../docs/reference/http-api.md", import.meta.url), "utf8");

/** The rows of a table under a heading, with single spaces and without links. */
function rowsUnder(heading: string, index = 0): readonly string[] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const table = section.match(/(?:^\|.*\n)+/gm)?.[index] ?? "";
  const rows = table.trim().split("\n").slice(2);
  return rows.map((row) => row.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replace(/ +/g, " "));
}

test("the table of routes has every route, with the first role that may use it", () => {
  const listed = rowsUnder("Routes").flatMap((row) => {
    const [, requests = "", role = ""] = row.split("|");
    const [first = "", ...others] = [...requests.matchAll(/`([^`?]+)[^`]*`/g)].map(([, request]) => request as string);
    const method = first.split(" ")[0];
    return [first, ...others.map((path) => `${method} ${path}`)].map((one) => [
      unnamed(one),
      role.replace(/[` ]|, all/g, ""),
    ]);
  });
  const described = operations.map(({ method, path, security }) => [
    unnamed(`${method} ${path}`),
    security[0]?.token[0] ?? "none",
  ]);
  const ofBrowsers = ["GET /", "GET /console/"].map((request) => [request, "none"]);
  expect(listed.sort()).toEqual([...described, ...ofBrowsers].sort());
});

/** The page has shorter names of parameters. */
function unnamed(request: string): string {
  return request.replace(/\{[^}]+\}/g, "{}");
}

const TABLES = [
  ["Lease runs", 0, "LeaseRequest"],
  ["Lease runs", 1, "Lease"],
  ["Generate call numbers", 0, "NumbersRequest"],
  ["Generate call numbers", 1, "Numbers"],
  ["Report progress", 0, "ReportRequest"],
] as const;

test.each(TABLES)("the rows under %j, table %i, are the fields of %s", (heading, index, id) => {
  expect(rowsUnder(heading, index)).toEqual(rowsOf(id));
});

function rowsOf(id: string, prefix = ""): readonly string[] {
  const { properties = {}, required = [] } = schemas[id] as Field;
  return Object.entries(properties).flatMap(([name, field]) => {
    if (name === "holder") return rowsOf(field.$ref?.split("/").at(-1) as string, "holder.");
    const optional = required.includes(name) ? "" : "; optional";
    return `| \`${prefix}${name}\` | ${rangeOf(field)}${optional} | ${field.description} |`;
  });
}

function rangeOf(field: Field): string {
  const { type, pattern = "", minimum, maximum = 0, minLength, maxLength, maxProperties, maxItems } = field;
  if (field.anyOf) return `${rangeOf(field.anyOf[0] as Field)} or null`;
  if (field.enum) return field.enum.map((one) => `\`${one}\``).join(", ");
  if (field["x-unit"] === "ledger id") return "Ledger id";
  if (type === "integer") {
    const unit = field["x-unit"]?.startsWith("milliseconds") ? ", ms" : "";
    return `Integer, ${minimum} ${maximum < INSTANT_MAX_MS ? `to ${shown(maximum)}` : "or more"}${unit}`;
  }
  if (type === "array") return `List of 1 to ${shown(maxItems ?? 0)}`;
  if (type !== "string") return maxProperties === undefined ? "Object" : `Object of at most ${maxProperties}`;
  if (maxLength !== undefined) return `${minLength} to ${maxLength} printable characters`;
  const [, characters, least, most] = /^\^\[([^\]]+)\]\{(\d+),?(\d*)\}\$$/.exec(pattern) ?? [];
  if (characters === undefined) return "Text";
  return `${least}${most ? ` to ${most}` : ""} ${characters === "!-~" ? "printable ASCII characters" : `characters \`${characters}\``}`;
}

function shown(count: number): string {
  const bits = Math.log2(count + 1);
  return Number.isInteger(bits) && bits > 14 ? `2^${bits} − 1` : count.toLocaleString("en-US");
}
