/**
 * Numbers for a message that a mail program delivers, each by a request to the coordinator. Such a process ends with its message: a client would
 * lease a run for each.
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { ClientError } from "@callnumber/client";
import { ERROR_RULES, isErrorCode, pathOf } from "@callnumber/protocol/api";
import { numbersResponseSchema } from "@callnumber/protocol/schemas";
import type { WorkerSettings } from "./client-options.js";
import type { NumberSource } from "./range-importer.js";

/** The coordinator answers within 5 s, if it is there. */
const REQUEST_TIMEOUT_MS = 30_000;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;

export class RequestedNumbers implements NumberSource {
  readonly #settings: WorkerSettings;
  readonly #onRetry: (error: ClientError) => void;
  readonly #closing = new AbortController();
  #storeId: string | undefined;

  /** @param storeId of the archive; undefined while it has none. */
  constructor(settings: WorkerSettings, storeId: string | undefined, onRetry: (error: ClientError) => void) {
    this.#settings = settings;
    this.#storeId = storeId;
    this.#onRetry = onRetry;
  }

  get storeId(): string | undefined {
    return this.#storeId;
  }

  /** @throws ClientError as a client does, after `waitTimeoutMs` at the latest. What a failed request made is discarded. */
  async take(count: number): Promise<readonly string[]> {
    const endMs = performance.now() + this.#settings.waitTimeoutMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#request(
          count,
          Math.ceil(Math.max(Math.min(endMs - performance.now(), REQUEST_TIMEOUT_MS), 1)),
        );
      } catch (error) {
        if (this.#closing.signal.aborted)
          throw new ClientError("client_closed", "the import was stopped while it waited for a number");
        if (!(error instanceof ClientError)) throw error;
        const { code, retryAfterMs = 0 } = error;
        const pauseMs = retryAfterMs + Math.random() * Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS);
        const isLasting =
          code !== "coordinator_unreachable" && !(isErrorCode(code) && ERROR_RULES[code].retry === "later");
        if (isLasting || performance.now() + pauseMs > endMs) throw error;
        this.#onRetry(error);
        await delay(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => {});
      }
    }
  }

  /** Ends a wait. */
  async close(): Promise<void> {
    this.#closing.abort();
  }

  async #request(count: number, timeoutMs: number): Promise<readonly string[]> {
    const { coordinator, namespace, token, tokenFile } = this.#settings;
    const given = tokenFile === undefined ? token : readFileSync(tokenFile, "utf8");
    const holder = { name: "callnumber-archive", host: hostname() };
    const expectedStoreId = this.#storeId;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(timeoutMs)]);
    const url = `${coordinator.replace(/\/+$/, "")}${pathOf("numbers", { namespace })}?count=${count}`;
    const headers = { "content-type": "application/json", ...(given && { authorization: `Bearer ${given.trim()}` }) };
    const body = JSON.stringify({ holder, expectedStoreId });
    let response: Response;
    let answer: unknown;
    try {
      response = await fetch(url, { method: "POST", headers, body, signal });
      answer = await response.json();
    } catch (error) {
      const { cause = error } = error as Error;
      const message = `no coordinator answers at ${coordinator} (${(cause as Error).message})`;
      throw new ClientError("coordinator_unreachable", message, { cause: error });
    }
    const made = numbersResponseSchema.safeParse(answer);
    if (response.ok && made.success && made.data.callNumbers.length === count) {
      this.#storeId = made.data.storeId;
      return made.data.callNumbers;
    }
    const { code, message, retryAfterMs } = (answer ?? {}) as Partial<ClientError>;
    if (!isErrorCode(code)) {
      const text = `${coordinator} returned status ${response.status}, not as a coordinator does`;
      throw new ClientError(response.status > 501 ? "coordinator_unreachable" : "invalid_response", text);
    }
    throw new ClientError(code, String(message), { retryAfterMs });
  }
}
