/** `serve --connections`: how many callers may be connected at a time. */
import type { Option } from "commander";
import { DEFAULT_CONNECTION_COUNT_MAX } from "../http/strict-server.js";
import { checkedOption, wholeNumber } from "./options.js";

/** Below this the operator's own page and a handful of importers would be in each other's way. */
const CONNECTION_COUNT_LEAST = 16;

export interface ConnectionOptions {
  readonly connections: number;
}

export function connectionsOption(): Option {
  return checkedOption(
    "--connections <n>",
    "open connections at a time; beyond it those that never asked anything are closed first",
    wholeNumber(CONNECTION_COUNT_LEAST, 100_000),
  ).default(DEFAULT_CONNECTION_COUNT_MAX);
}
