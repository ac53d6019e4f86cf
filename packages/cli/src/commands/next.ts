/** `next`: call numbers at the terminal and in scripts, made by the coordinator. */
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { LEASE_RUN_COUNT_MAX, NUMBER_COUNT_MAX, pathOf } from "@callnumber/protocol/api";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { numbersResponseSchema } from "@callnumber/protocol/schemas";
import { Command } from "commander";
import { invocation } from "../invocation.js";
import {
  addOptions,
  checkedOption,
  coordinatorOptions,
  type NamespaceOptions,
  namespaceOption,
  wholeNumber,
} from "../options.js";
import { jsonLine, print } from "../output.js";
import { RequestError, requestJson } from "../requests.js";

/** As many as `take` of the client. */
const COUNT_MAX = LEASE_RUN_COUNT_MAX * SEQUENCE_COUNT;
const WAIT_TIMEOUT_MS = 10_000;
/** On top of what the coordinator asks for: commands that failed together do not come back together. */
const JITTER_MS = 400;

export function makeCommand(): Command {
  const command = new Command("next")
    .description(
      "Asks the coordinator for call numbers and prints them, one a line. The coordinator makes them all of one run, so a script may call " +
        "it for each message. For more than some hundred numbers a second use the client in your own program.",
    )
    .addHelpText("after", "\nExample:\n  $ callnumber next -n 3")
    .action(next);
  return addOptions(command, [
    checkedOption("-n, --count <count>", "call numbers to generate", wholeNumber(1, COUNT_MAX)).default(1),
    ...coordinatorOptions(),
    namespaceOption(),
  ]);
}

async function next({
  count,
  namespace,
  json,
  ...place
}: NamespaceOptions & { readonly count: number }): Promise<void> {
  const holder = { name: "callnumber-next", host: hostname() };
  const callNumbers: string[] = [];
  let storeId: string | undefined;
  while (callNumbers.length < count) {
    const missing = Math.min(count - callNumbers.length, NUMBER_COUNT_MAX);
    const path = `${pathOf("numbers", { namespace })}?count=${missing}`;
    const request = () => requestJson(place, path, numbersResponseSchema, { holder, expectedStoreId: storeId });
    const made = await retried(request, json ? undefined : invocation().io.stderr);
    callNumbers.push(...made.callNumbers.slice(0, missing));
    storeId = made.storeId;
  }
  print(json ? jsonLine({ storeId, callNumbers }) : callNumbers.join("\n"));
}

/** Repeats a request that can succeed later: what the one before may have made is discarded, and this one gets other numbers. */
async function retried<T>(request: () => Promise<T>, stderr: { write(text: string): unknown } | undefined): Promise<T> {
  const startedMs = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await request();
    } catch (error) {
      const { message, retryAfterMs } = error as RequestError;
      const pauseMs = (retryAfterMs ?? 0) + Math.ceil((Math.random() + 0.1) * JITTER_MS);
      const isLate = performance.now() + pauseMs - startedMs > WAIT_TIMEOUT_MS;
      if (!(error instanceof RequestError) || retryAfterMs === undefined || isLate) throw error;
      if (attempt === 1) stderr?.write(`callnumber: ${message}; trying for ${WAIT_TIMEOUT_MS / 1000} s\n`);
      await delay(pauseMs);
    }
  }
}
