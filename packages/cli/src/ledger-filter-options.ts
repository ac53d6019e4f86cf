/** The flags that say which leases are meant, for every command that reads the ledger, and the query that they become. */
import { ledgerFilterShape } from "@callnumber/protocol/schemas";
import { type KnownRunState, labelIn } from "@callnumber/protocol/wire";
import { InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { checked, checkedOption, holderOption, wholeNumber } from "./options.js";

export interface FilterOptions {
  readonly holder?: string;
  readonly host?: string;
  readonly label?: readonly string[];
  readonly state?: KnownRunState;
  readonly from?: number;
  readonly to?: number;
  readonly fromRun?: number;
  readonly toRun?: number;
}

/** `version · 2^30 + run`, which for version 0 is the run itself. */
export const LEDGER_ID_MAX = 2 ** 33 - 1;

const STATES = ledgerFilterShape.state.unwrap().options;

const timeSchema = z
  .string()
  .transform((text) => Date.parse(text))
  .pipe(z.number({ error: "must be a time such as 2026-11-21 or 2026-11-21T08:00:00Z" }).min(0));

export function filterOptions(): readonly Option[] {
  return [
    holderOption(),
    checkedOption("--host <name>", "only leases of holders on this host", z.string().min(1)),
    labelOption(),
    checkedOption("--state <state>", `only leases in this state: ${STATES.join(", ")}`, stateSchema()),
    checkedOption("--from <time>", "leased at this time or later", timeSchema),
    checkedOption("--to <time>", "leased before this time", timeSchema),
    checkedOption("--from-run <run>", "only leases that hold this run or a later one", wholeNumber(0, LEDGER_ID_MAX)),
    checkedOption("--to-run <run>", "only leases that hold this run or an earlier one", wholeNumber(0, LEDGER_ID_MAX)),
  ];
}

export function filterQuery({ holder, host, label, state, from, to, fromRun, toRun }: FilterOptions): URLSearchParams {
  const query = new URLSearchParams((label ?? []).map((text): [string, string] => ["label", text]));
  const single = { holder, host, state, leasedFromMs: from, leasedToMs: to, fromRun, toRun };
  for (const [name, value] of Object.entries(single)) if (value !== undefined) query.set(name, String(value));
  return query;
}

/** May be given several times. */
function labelOption(): Option {
  const description = "only leases of holders with this label; may be given several times";
  return new Option("--label <name=value>", description).argParser((text: string, before: readonly string[] = []) => {
    const [name, value] = labelIn(text);
    if (name === "" || value === "") throw new InvalidArgumentError("must be name=value");
    return [...before, checked(z.string(), text)];
  });
}

function stateSchema(): z.ZodType {
  return z.enum(STATES, { error: `must be one of ${STATES.join(", ")}` });
}
