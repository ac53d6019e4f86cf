/** `export`: the ledger, or a part of it, on standard output. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { exportEndSchema } from "@callnumber/protocol/operator-schemas";
import { filledPath } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { invocation } from "../invocation.js";
import {
  addOptions,
  coordinatorOptions,
  type FilterOptions,
  filterOptions,
  filterQuery,
  type NamespaceOptions,
  namespaceOption,
} from "../options.js";
import { RequestError, requestStream } from "../requests.js";

type Options = FilterOptions & NamespaceOptions;

/** More than the end of an export takes. */
const TAIL_BYTES = 256;

export function exportCommand(): Command {
  const command = new Command("export")
    .description(
      "Writes leases to standard output as NDJSON, oldest first: a lease on each line, and a last line that marks a complete export. The " +
        "exit code is 1 when the export is incomplete.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber export > leases.ndjson\n" +
        "  $ callnumber export --from 2026-11-16 --to 2026-11-23 | gzip > week.ndjson.gz",
    )
    .action(exportLeases);
  return addOptions(command, [...filterOptions(), ...coordinatorOptions(), namespaceOption()]);
}

/** @throws RequestError with the coordinator's own code; `export_incomplete` when it is incomplete. */
async function exportLeases(options: Options): Promise<void> {
  const command = invocation();
  const path = `${filledPath(OPERATOR_ROUTES.export, { namespace: options.namespace })}?${filterQuery(options)}`;
  let tail = Buffer.alloc(0);
  for await (const piece of completely(await requestStream(options, path))) {
    tail = Buffer.concat([tail, piece]).subarray(-TAIL_BYTES);
    await command.write(piece);
  }
  if (!isEnd(tail)) throw incomplete("its last line is missing");
}

/** Only what fails while it is read makes the export incomplete: writing may fail, too. */
async function* completely(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    yield* body;
  } catch (error) {
    throw incomplete(error);
  }
}

function isEnd(tail: Buffer): boolean {
  const [, lastLine = ""] = /([^\n]*)\n$/.exec(tail.toString()) ?? [];
  try {
    return exportEndSchema.safeParse(JSON.parse(lastLine)).success;
  } catch {
    return false;
  }
}

function incomplete(cause: unknown): RequestError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `the export was broken off: ${reason}. What came is a part of it only`;
  return new RequestError("export_incomplete", message, { cause });
}
