/** `next`: makes call numbers at the terminal, as an importer would. */
import { ClientError, createClient, TAKE_COUNT_MAX } from "@callnumber/client";
import { Command } from "commander";
import { escapeAndShorten, withoutTokens } from "../text.js";
import { AskError } from "./ask-error.js";
import { bearerToken, tokenFileOption } from "./bearer-token.js";
import { commandIo } from "./command-io.js";
import { checkedOption, coordinatorOption, namespaceOption, wholeNumber } from "./options.js";
import { warnOfPlainToken } from "./plain-token.js";
import { jsonLine, print } from "./print.js";

const WAIT_TIMEOUT_MS = 10_000;

interface Options {
  readonly count: number;
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  readonly json?: boolean;
}

export function nextCommand(): Command {
  return new Command("next")
    .summary("make call numbers")
    .description(
      "Leases a run, makes call numbers from it and prints them, one a line. What is left of the run is given up: each call " +
        "takes a new run. For many numbers use -n, or the client in your own program.",
    )
    .addOption(checkedOption("-n, --count <count>", "how many", wholeNumber(1, TAKE_COUNT_MAX)).default(1))
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(namespaceOption())
    .addHelpText("after", "\nExample:\n  $ callnumber next -n 3")
    .action(async ({ count, coordinator, tokenFile, namespace, json }: Options) => {
      const { stderr } = commandIo();
      const isTokenAsked = bearerToken(tokenFile) !== undefined;
      await using client = createClient({
        coordinator,
        ...(isTokenAsked ? { token: () => bearerToken(tokenFile) ?? "" } : {}),
        namespace,
        holder: { name: "callnumber-next" },
        leaseRunCountMax: Math.min(Math.max(Math.ceil(count / 16_384), 1), 64),
        refill: "when_empty",
        waitTimeoutMs: WAIT_TIMEOUT_MS,
        hooks: {
          onCoordinatorAway({ error, attempt }) {
            if (attempt > 1) return;
            const reason = escapeAndShorten(withoutTokens(error.message));
            stderr.write(`callnumber: ${reason}; trying for ${WAIT_TIMEOUT_MS / 1000} s\n`);
          },
        },
      });
      if (isTokenAsked) warnOfPlainToken(coordinator);
      const callNumbers = await client.take(count).catch(tellRefusal);
      print(json ? jsonLine({ storeId: client.storeId, callNumbers }) : callNumbers.join("\n"));
    });
}

/** The client gives what the coordinator said to its program as it came. */
function tellRefusal(error: unknown): never {
  throw error instanceof ClientError ? new AskError(error.code, error.message, { cause: error }) : error;
}
