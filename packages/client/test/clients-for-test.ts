/** Clients that a test makes, closed after it, and what tests of clients share. */
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { type Client, createClient } from "../src/index.js";
import { timers } from "../src/node-process.js";
import type { ClientOptions } from "../src/options.js";
import type { ScriptedSource } from "./scripted-source.js";

/** Returns a function that makes a client, for all tests of a file. No client pauses before a retry where the coordinator asks for no pause. */
export function clientsForTest(): (source: ScriptedSource, options?: Partial<ClientOptions>) => Client {
  const clients: Client[] = [];
  beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0));
  afterEach(async () => {
    const closings = clients.splice(0).map((client) => client.close());
    if (vi.isFakeTimers()) await vi.advanceTimersByTimeAsync(1_000);
    vi.useRealTimers();
    vi.restoreAllMocks();
    await Promise.all(closings);
  });
  return (source, options = {}) => {
    const client = createClient({ source, holder: { name: "test" }, ...options });
    clients.push(client);
    return client;
  };
}

/** Time passes for the client when the test says so; `others`: what else of the platform stands still. */
export function holdTimers(...others: "performance"[]): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", ...others] });
  vi.spyOn(timers, "setTimeout").mockImplementation(setTimeout);
  vi.spyOn(timers, "clearTimeout").mockImplementation(clearTimeout);
}
export const never = () => new Promise(() => {});
export const code = (expected: string) => expect.objectContaining({ name: "ClientError", code: expected });
export const runsOf = (callNumbers: readonly string[]) => [
  ...new Set(callNumbers.map((text) => decodeCallNumber(text).run)),
];
