/** The console in a browser before a real coordinator, with tokens and without; and leases, as importers make them. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { type Lease, ledgerIdOf, pathOf } from "@callnumber/protocol/api";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { Coordinator } from "../../packages/coordinator/src/coordinator.js";
import { EventHub } from "../../packages/coordinator/src/events/events.js";
import { RecentEvents } from "../../packages/coordinator/src/events/recent-events.js";
import { createServer } from "../../packages/coordinator/src/http/server.js";
import { SILENT_LOG } from "../../packages/coordinator/src/log.js";
import { MemoryStore } from "../../packages/coordinator/src/stores/memory.js";
import { TokenAuthenticator } from "../../packages/coordinator/src/tokens/token-auth.js";
import { digestOf, type TokenRecord, tokenIdOf } from "../../packages/coordinator/src/tokens/tokens-file.js";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "../processes/command.js";
import { heading, newPage } from "./browser.js";

export interface OpenedConsole {
  readonly page: Page;
  readonly url: string;
  readonly coordinator: RunningCoordinator;
  /** Goes to a place of the page, and waits for its heading. */
  readonly visit: (place: string) => Promise<void>;
}

/** Starts a coordinator with a new embedded store, and opens its console. Both end with the test. */
export async function openConsole(
  browser: Browser,
  options: BrowserContextOptions = {},
  { namespaces = [] }: { readonly namespaces?: readonly string[] } = {},
): Promise<OpenedConsole> {
  const store = `sqlite:${join(await folderForTest(), "store.db")}`;
  for (const namespace of namespaces) await callnumber(["init", "--store", store, "--namespace", namespace]);
  const coordinator = await serve(store, "--create");
  const { url } = coordinator;
  const page = await newPage(browser, new URL(url).origin, options);
  return { page, url, coordinator, visit: visitor(page, url) };
}

function visitor(page: Page, url: string): OpenedConsole["visit"] {
  return async (place) => {
    await page.goto(`${url}/console/#${place}`);
    await heading(page).waitFor();
  };
}

export const READER = `cn_${"r".repeat(43)}`;
export const OPERATOR = `cn_${"o".repeat(43)}`;
export const IMPORTER = `cn_${"i".repeat(43)}`;
/** Grants access to the namespace `lists` alone. */
export const OF_LISTS = `cn_${"l".repeat(43)}`;

const sha256Of = (token: string) => digestOf(token).toString("hex");

function recordOf(
  token: string,
  role: TokenRecord["role"],
  namespaces: TokenRecord["namespaces"] = "all",
): TokenRecord {
  const sha256 = sha256Of(token);
  return { id: tokenIdOf(sha256), sha256, role, namespaces, createdAtMs: 1 };
}

/** Starts a coordinator that requires tokens, in this process, with the namespaces `main` and `lists`, and opens its console. */
export async function openConsoleWithTokens(browser: Browser, options: BrowserContextOptions = {}) {
  const records = [
    recordOf(READER, "read"),
    recordOf(OPERATOR, "operator"),
    recordOf(IMPORTER, "lease"),
    recordOf(OF_LISTS, "read", ["lists"]),
  ];
  const authenticator = new TokenAuthenticator(records);
  const revoke = (token: string) => authenticator.replace(records.filter(({ sha256 }) => sha256 !== sha256Of(token)));
  const events = new EventHub(SILENT_LOG);
  const recentEvents = new RecentEvents();
  events.subscribe(recentEvents.take);
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "mail-1", log: events });
  for (const namespace of ["main", "lists"]) await coordinator.initNamespace(namespace);
  const newServer = () => createServer({ coordinator, release: "0.0.0", events, recentEvents, authenticator });
  let server = newServer();
  onTestFinished(() => server.stop());
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  /** Stops the server, and starts another one on the same port. */
  const restart = async () => {
    await server.stop();
    server = newServer();
    await server.listen({ host: "127.0.0.1", port: Number(new URL(url).port) });
  };
  const page = await newPage(browser, url, options);
  return { page, url, revoke, coordinator, restart, visit: visitor(page, url) };
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

interface LeaseOptions {
  readonly name: string;
  readonly host?: string;
  readonly runCount?: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export async function lease(url: string, options: LeaseOptions, namespace = "main"): Promise<Lease> {
  const { name, host = "mail-1", runCount = 1, labels = {} } = options;
  const holder = { name, host, pid: 4711, labels };
  const body = { runCount, nonce: randomUUID(), holder, lastRun: null, proof: null, sentAtMs: Date.now() };
  // A young store leases two runs a second.
  for (;;) {
    const response = await post(`${url}${pathOf("leases", { namespace })}`, body);
    if (response.status === 201) return (await response.json()) as Lease;
    const rejection = (await response.json()) as { code: string; retryAfterMs?: number };
    expect(rejection.code).toBe("run_ceiling_reached");
    await new Promise((resolve) => setTimeout(resolve, rejection.retryAfterMs));
  }
}

export async function report(url: string, lease: Lease, lastSequence: number | null, state: string): Promise<void> {
  const { namespace, version, firstRun, nonce } = lease;
  const path = pathOf("report", { namespace, run: ledgerIdOf(version, firstRun) });
  expect((await post(`${url}${path}`, { nonce, lastSequence, state })).status).toBe(200);
}

export function post(url: string, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}
