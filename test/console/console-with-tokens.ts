/** The console of a coordinator that requires tokens, in this process: a test revokes them, and starts it again on the same port. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { Coordinator } from "../../packages/coordinator/src/coordinator.js";
import { EventHub } from "../../packages/coordinator/src/events/events.js";
import { RecentEvents } from "../../packages/coordinator/src/events/recent-events.js";
import { createServer } from "../../packages/coordinator/src/http/server.js";
import { SILENT_LOG } from "../../packages/coordinator/src/log.js";
import { MemoryStore } from "../../packages/coordinator/src/stores/memory.js";
import { TokensInHand } from "../../packages/coordinator/test/tokens-in-hand.js";
import { heading, newPage, type Watched } from "./browser.js";

export const READER = `cn_${"r".repeat(43)}`;
export const OPERATOR = `cn_${"o".repeat(43)}`;
export const IMPORTER = `cn_${"i".repeat(43)}`;
/** Good for the namespace `lists` alone. */
export const OF_LISTS = `cn_${"l".repeat(43)}`;

interface CoordinatorWithTokens {
  readonly url: string;
  readonly tokens: TokensInHand;
  readonly coordinator: Coordinator;
  /** Stops, and starts another one at the same address. */
  startAgain(): Promise<void>;
}

/** With the namespaces `main` and `lists`, and one token of each kind. Ends with the test. */
async function coordinatorWithTokens(): Promise<CoordinatorWithTokens> {
  const tokens = new TokensInHand();
  tokens.add(READER, "read");
  tokens.add(OPERATOR, "operator");
  tokens.add(IMPORTER, "lease");
  tokens.add(OF_LISTS, "read", ["lists"]);
  const events = new EventHub(SILENT_LOG);
  const recentEvents = new RecentEvents();
  events.subscribe(recentEvents.take);
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "mail-1", log: events });
  for (const namespace of ["main", "lists"]) await coordinator.initNamespace(namespace);
  const newServer = () => createServer({ coordinator, release: "0.0.0", events, recentEvents, authenticator: tokens });
  let server = await newServer();
  onTestFinished(() => server.stop());
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const startAgain = async () => {
    await server.stop();
    server = await newServer();
    await server.listen({ host: "127.0.0.1", port: Number(new URL(url).port) });
  };
  return { url, tokens, coordinator, startAgain };
}

interface ConsoleWithTokens extends Watched, CoordinatorWithTokens {
  readonly visit: (place: string) => Promise<void>;
}

/** What the page must never do is looked at in the end. */
export async function openConsoleWithTokens(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<ConsoleWithTokens> {
  const coordinator = await coordinatorWithTokens();
  const watched = await newPage(browser, coordinator.url, options);
  onTestFinished(() => expect(watched.wrongs()).toEqual([]));
  const visit = async (place: string) => {
    await watched.page.goto(`${coordinator.url}/console/#${place}`);
    await heading(watched.page).waitFor();
  };
  return { ...watched, ...coordinator, visit };
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}
