/** The site of the documents, built from their sources: each page is there, each link leads somewhere, and the search finds a term. */
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deadLinks } from "../site/links.js";
import { REPOSITORY } from "./processes/command.js";

const site = mkdtempSync(join(tmpdir(), "callnumber-site-"));
const filesIn = (folder: string) => readdirSync(folder, { recursive: true, encoding: "utf8" });
const pages = () => filesIn(site).filter((name) => name.endsWith(".html"));

beforeAll(() => {
  const script = join(REPOSITORY, "scripts/site.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "--outDir", site], { encoding: "utf8" });
  expect(status, `${stdout}${stderr}`).toBe(0);
});
afterAll(() => rmSync(site, { recursive: true }));

test("the site has a page for each document, and for the README of each package and client", () => {
  const documents = filesIn(join(REPOSITORY, "docs")).map((name) => join("docs", name));
  const readmes = ["packages", "clients", "examples"].flatMap((kind) =>
    readdirSync(join(REPOSITORY, kind)).map((name) => join(kind, name, "README.md")),
  );
  const sources = [...readdirSync(REPOSITORY), ...documents, ...readmes].filter(
    (name) => name.endsWith(".md") && existsSync(join(REPOSITORY, name)),
  );
  expect(sources).toEqual(
    expect.arrayContaining(["README.md", "packages/archive/README.md", "clients/python/README.md"]),
  );
  const expected = sources.map((name) => name.replace(/(?<=^|\/)README\.md$/, "index.md").replace(/md$/, "html"));
  expect(pages()).toEqual(expect.arrayContaining(expected));
});

test("no link of the site is dead, and a dead one of each kind would be found", () => {
  expect(deadLinks(site)).toEqual([]);
  const dead = ["faults.html", "guarantees.html#none", "#none", "none.png"];
  for (const link of dead) appendFileSync(join(site, "docs/index.html"), `<a href="${link}"></a>`);
  expect(deadLinks(site)).toEqual(dead.map((link) => `/docs/index.html: ${link}`));
});

test("the search of the site finds the run ceiling without a service", async () => {
  const chunks = join(site, "assets/chunks");
  const name = readdirSync(chunks).find((one) => one.includes("localSearchIndexroot"));
  const index = (await import(join(chunks, name as string))) as { default: string };
  const ofGenerator = createRequire(realpathSync(join(REPOSITORY, "site/node_modules/vitepress/package.json")));
  const { default: MiniSearch } = await import(ofGenerator.resolve("minisearch"));
  const found = MiniSearch.loadJSON(index.default, { fields: ["title", "titles", "text"] }).search("run ceiling");
  expect(found[0].id).toBe("/docs/explanation/rollback-guard.html#the-run-ceiling");
});

test("no page of the site loads anything from another place", () => {
  const loaded = /<(?:script|link|img)\b[^>]*\s(?:src|href)="(?:https?:)?\/\/[^"]*"/g;
  expect(pages().flatMap((page) => readFileSync(join(site, page), "utf8").match(loaded) ?? [])).toEqual([]);
});
