/** What several tests of the command share. */
import { EventEmitter, once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { createClient } from "@callnumber/client";
import { pathOf } from "@callnumber/protocol/api";
import type { StatusResponse } from "@callnumber/protocol/schemas";
import { expect, onTestFinished, vi } from "vitest";
import {
  callnumber,
  type Finished,
  folderForTest,
  type RunningCoordinator,
  serve,
} from "../../../test/processes/command.js";
import { invoke } from "../src/invocation.js";

/** No coordinator responds here. */
export const NOWHERE = "http://127.0.0.1:1";

/** From now on what a test file does is done by a command, on no terminal and without settings. */
export function beInCommand(signals = new EventEmitter()): void {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  void invoke({ ...streams, env: {}, signals, exit: () => {} }, async () => {});
}

/** The URL of an embedded store that does not exist yet. */
export async function embeddedStore(): Promise<string> {
  return `sqlite:${join(await folderForTest(), "store.db")}`;
}

/** A coordinator on a new embedded store. `to`: the options that name it. */
export async function newCoordinator(): Promise<RunningCoordinator & { readonly to: readonly string[] }> {
  const running = await serve(await embeddedStore(), "--create");
  return { ...running, to: ["--coordinator", running.url] };
}

/** Runs a command that must succeed. */
export async function done(...words: readonly string[]): Promise<Finished> {
  const finished = await callnumber(words);
  expect(finished, words.join(" ")).toMatchObject({ code: 0 });
  return finished;
}

/** Runs a command that must succeed, and parses what it prints. */
export async function jsonOf<T = Record<string, unknown>>(...words: readonly string[]): Promise<T> {
  return JSON.parse((await done(...words, "--json")).stdout) as T;
}

/** Expects a command to fail with the exit code and the message, and prints nothing on standard output. */
export async function expectFailure(
  words: readonly string[],
  code: number,
  message: RegExp | string,
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const finished = await callnumber(words, { env });
  expect(finished, words.join(" ")).toMatchObject({ code, stdout: "" });
  if (typeof message === "string") expect(finished.stderr).toContain(message);
  else expect(finished.stderr).toMatch(message);
  return finished;
}

/** Generates call numbers as an importer that then closes: with a run of its own. */
export async function imported(url: string, count = 1, token?: string): Promise<readonly string[]> {
  const holder = { name: "importer" };
  // On a busy machine a store that was moved is claimed late.
  await using client = createClient({ coordinator: url, holder, token, waitTimeoutMs: 60_000 });
  return await client.take(count);
}

/** Listens until the test ends. Returns the URL. */
export async function httpServer(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Until the test ends, requests to the default URL go to another one: this machine may run a coordinator there. */
export function defaultCoordinatorAt(url: string): void {
  const { fetch } = globalThis;
  const fetching = vi
    .spyOn(globalThis, "fetch")
    .mockImplementation((to, init) => fetch(`${to as string}`.replace("http://127.0.0.1:7300", url), init));
  onTestFinished(() => fetching.mockRestore());
}

/** The status of a coordinator that leases. */
export const STATUS: StatusResponse = {
  namespace: "main",
  storeId: "s",
  store: "memory",
  coordinator: "c",
  version: 0,
  firstRun: 1,
  highWaterMark: 5,
  runsUsed: 5,
  runsLeft: 9,
  callNumbersLeft: 9,
  lastLeaseAtMs: 1,
  guard: {
    state: "active",
    code: null,
    reason: null,
    sinceMs: 1,
    explanation: "",
    generation: 1,
    headroomRuns: 5,
    nodeCount: 1,
    lastRecovery: null,
  },
  rates: [],
};

export interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Returns the complete lines of JSON in an output. */
export function jsonLines<T = LogLine>(text: string): T[] {
  const lines = text.split("\n").filter((line) => line.endsWith("}"));
  return lines.map((line) => JSON.parse(line) as T);
}

export async function post(url: string, path: string, body: unknown): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  return await (await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

export interface LeaseOptions {
  readonly name?: string;
  readonly host?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly runCount?: number;
}

interface LeaseResult {
  readonly firstRun: number;
  readonly nonce: string;
  /** Of a failure, as the message is. */
  readonly code?: string;
  readonly message?: string;
}

let nonceCount = 0;

/** Requests a lease as an importer does. Resolves to a failure, too. */
export async function lease(url: string, options: LeaseOptions = {}): Promise<LeaseResult> {
  const { name = "importer", host = "mail-1", labels = {}, runCount = 1 } = options;
  const holder = { name, host, pid: 4711, labels };
  const nonce = `nonce-of-lease-${process.pid}-${nonceCount++}`;
  const request = { runCount, nonce, holder, lastRun: null, proof: null, sentAtMs: 1_700_000_000_000 };
  return (await post(url, pathOf("leases", { namespace: "main" }), request)) as LeaseResult;
}
