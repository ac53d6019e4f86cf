/** The files of the console as a coordinator serves them. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderForTest, serve } from "../processes/command.js";

test("the coordinator serves the console under one path, with a policy that no other response has", async () => {
  const { url } = await serve(`sqlite:${join(await folderForTest(), "store.db")}`, "--create");
  const link = await fetch(`${url}/console`, { redirect: "manual" });
  expect([link.status, link.headers.get("location")]).toEqual([302, "./console/"]);
  const page = await fetch(`${url}/console/`);
  expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'none';/);
  expect(page.headers.get("content-security-policy")).not.toContain("unsafe");
  const script = /src="\.\/(assets\/[^"]+\.js)"/.exec(await page.text())?.[1];
  const plain = await fetch(`${url}/console/${script}`, { headers: { "accept-encoding": "identity" } });
  const gzipped = await fetch(`${url}/console/${script}`, { headers: { "accept-encoding": "gzip" } });
  expect([plain.headers.get("content-encoding"), gzipped.headers.get("content-encoding")]).toEqual([null, "gzip"]);
  expect(await gzipped.text()).toBe(await plain.text());
  expect((await fetch(`${url}/healthz`)).headers.get("content-security-policy")).toBeNull();
  expect((await fetch(`${url}/console/../package.json`)).status).toBe(404);
  expect((await fetch(`${url}/console/%2e%2e/%2e%2e/package.json`)).status).toBe(404);
});
