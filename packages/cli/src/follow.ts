/** Commands that go on until Ctrl-C: they show again whatever may have changed, each time the coordinator's event stream sends something. */
import { setTimeout as delay } from "node:timers/promises";
import { ROUTES } from "@callnumber/protocol/api";
import { invocation } from "./invocation.js";
import type { NamespaceOptions } from "./options.js";
import { failureText } from "./output.js";
import { RequestError, requestStream } from "./requests.js";
import { untilStopped } from "./signals.js";

/** Events of the same second are shown together. */
const PAUSE_MS = 1_000;
const RECONNECT_AFTER_MS = 2_000;
/** Trying again does not help. */
const PERMANENT: ReadonlySet<unknown> = new Set(["unauthorized", "forbidden", "token_invalid"]);

/**
 * Calls `show` now, after events of the namespace, and at least every 15 seconds, which is how often the stream sends something. Resolves
 * when the command is asked to stop. Once it has shown something, it connects again after a failure.
 * @throws RequestError where the first request fails, or the token is rejected.
 */
export async function follow(place: NamespaceOptions, show: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  void untilStopped().then(() => stop.abort());
  const path = `${ROUTES.events}?namespace=${encodeURIComponent(place.namespace)}`;
  const pause = (pauseMs: number) => delay(pauseMs, undefined, { signal }).catch(() => {});
  let hasShown = false;
  let hasFailed = false;
  while (!signal.aborted) {
    try {
      const stream = await requestStream(place, path, signal);
      await show();
      [hasShown, hasFailed] = [true, false];
      for await (const _ of stream) {
        await pause(PAUSE_MS);
        await show();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!hasShown || PERMANENT.has((error as RequestError).code)) throw error;
      if (error instanceof RequestError && !hasFailed && !place.json) noteFailure(error);
      hasFailed ||= error instanceof RequestError;
    }
    await pause(RECONNECT_AFTER_MS);
  }
}

function noteFailure(error: RequestError): void {
  invocation().io.stderr.write(`${failureText(error, false).trimEnd()}; trying again\n`);
}
