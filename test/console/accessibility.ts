/** Asks axe-core what stands in the way of whoever reads a page by other means than a mouse and good eyes. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[];
}

/** Each rule of axe-core holds, also those of good practice. */
export async function mustBeAccessible(page: Page): Promise<void> {
  const isThere = await page.evaluate<boolean>("typeof axe !== 'undefined'");
  // Through the debugger: the policy of the page allows no script of anybody else's.
  if (!isThere) await page.evaluate(AXE);
  const violations = await page.evaluate<Violation[]>("axe.run().then(({ violations }) => violations)");
  const told = violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`,
  );
  expect(told, page.url()).toEqual([]);
}
