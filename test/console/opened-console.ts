/** The console as a test meets it: a real coordinator, a real page, and somebody who watches both. */
import { join } from "node:path";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "../processes/command.js";
import { heading, newPage, type Watched } from "./browser.js";

export interface OpenedConsole extends Watched {
  readonly coordinator: RunningCoordinator;
  /** Goes to a place of the page, and waits until its heading stands. */
  readonly visit: (place: string) => Promise<void>;
}

/** A coordinator with a new embedded store, and the console in a browser before it. What the page must never do is looked at in the end. */
export async function openConsole(
  browser: Browser,
  options: BrowserContextOptions = {},
  { namespaces = [] }: { readonly namespaces?: readonly string[] } = {},
): Promise<OpenedConsole> {
  const store = `sqlite:${join(await folderForTest(), "store.db")}`;
  for (const namespace of namespaces) await callnumber(["init", "--store", store, "--namespace", namespace]);
  const coordinator = await serve(store, "--create");
  const watched = await newPage(browser, new URL(coordinator.url).origin, options);
  onTestFinished(() => expect(watched.wrongs()).toEqual([]));
  const visit = async (place: string) => {
    await watched.page.goto(`${coordinator.url}/console/#${place}`);
    await heading(watched.page).waitFor();
  };
  return { ...watched, coordinator, visit };
}
