/** `next`: makes call numbers at the terminal, as an importer would. */
import { ClientError, createClient, TAKE_COUNT_MAX } from "@callnumber/client";
import { escapeAndShorten } from "@callnumber/coordinator/internal/text";
import { LEASE_RUN_COUNT_MAX } from "@callnumber/protocol/api";
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
import { bearerToken, RequestError } from "../requests.js";

const WAIT_TIMEOUT_MS = 10_000;
const NUMBERS_PER_RUN = 16_384;

export function makeCommand(): Command {
  const command = new Command("next")
    .description(
      "Leases a run, makes call numbers from it and prints them, one a line. What is left of the run is given up: each call " +
        "takes a new run. For many numbers use -n, or the client in your own program.",
    )
    .addHelpText("after", "\nExample:\n  $ callnumber next -n 3")
    .action(next);
  return addOptions(command, [
    checkedOption("-n, --count <count>", "call numbers to make", wholeNumber(1, TAKE_COUNT_MAX)).default(1),
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
  const { stderr } = invocation().io;
  const hasToken = bearerToken(place) !== undefined;
  await using client = createClient({
    coordinator: place.coordinator,
    ...(hasToken ? { token: () => bearerToken(place) ?? "" } : {}),
    namespace,
    holder: { name: "callnumber-next" },
    maxRunsPerLease: Math.min(Math.ceil(count / NUMBERS_PER_RUN), LEASE_RUN_COUNT_MAX),
    prefetch: false,
    waitTimeoutMs: WAIT_TIMEOUT_MS,
    hooks: {
      onRetry({ error, attempt }) {
        if (attempt > 1 || json) return;
        stderr.write(`callnumber: ${escapeAndShorten(error.message)}; trying for ${WAIT_TIMEOUT_MS / 1000} s\n`);
      },
    },
  });
  const callNumbers = await client.take(count).catch((error: unknown) => {
    // The client passes on what the coordinator sent as it is.
    throw error instanceof ClientError ? new RequestError(error.code, error.message, { cause: error }) : error;
  });
  print(json ? jsonLine({ storeId: client.storeId, callNumbers }) : callNumbers.join("\n"));
}
