/** Which store the coordinator at hand serves. A command that names no store must not act on another one. */
import { isLoopback, realPathOf } from "@callnumber/coordinator/internal/machine";
import { describeStore, parseStoreUrl, placeOf, type StoreAddress } from "@callnumber/coordinator/operator";
import { type CommandContext, filledCommands, ROUTES, type StoreVerb, shellWord } from "@callnumber/protocol/api";
import { type SettingsResponse, settingsResponseSchema } from "@callnumber/protocol/schemas";
import type { Command, Option } from "commander";
import { invocation } from "./invocation.js";
import { type CoordinatorOptions, coordinatorOptions } from "./options.js";
import { RequestError, requestJson } from "./requests.js";
import { addStoreOptions, commandAgain, type StoreOptions } from "./store-options.js";

/**
 * As `addStoreOptions`, for a command that acts on a store. Without a store that is named, the coordinator is asked which one it serves,
 * and the command fails before it opens another one.
 */
export function addActingOptions(command: Command, options: readonly Option[]): Command {
  return addStoreOptions(command, [...options, ...coordinatorOptions()]).hook("preAction", async (_, action) => {
    if (action.getOptionValueSource("store") === "default") await assertDefaultStoreIsServed(action);
  });
}

/** The settings of a coordinator that responds, or why there are none. */
export interface RunningCoordinator {
  readonly url: string;
  readonly settings: SettingsResponse | null;
  readonly error: RequestError | null;
}

export async function runningCoordinator(options: CoordinatorOptions): Promise<RunningCoordinator> {
  const url = options.coordinator;
  try {
    const settings = await requestJson(options, ROUTES.settings, settingsResponseSchema);
    return { url, settings, error: null };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { url, settings: null, error };
  }
}

/**
 * Passes when nothing listens at the default URL, or when the coordinator serves the default store. Fails otherwise, with the command
 * that names the store: a coordinator that does not answer in time, or does not say what it serves, may serve another one.
 * @throws TypeError where the stores differ; RequestError where the coordinator does not report its store.
 */
async function assertDefaultStoreIsServed(command: Command): Promise<void> {
  const options = command.opts<StoreOptions & CoordinatorOptions>();
  const { url, settings, error } = await runningCoordinator(options);
  const isCoordinatorGiven = command.getOptionValueSource("coordinator") !== "default";
  if (error !== null && !isCoordinatorGiven && isRefused(error)) return;
  const address = parseStoreUrl(options.store);
  const { checkpointOption = "" } = invocation().context ?? {};
  const storeOption = `--store ${shellWord(describeStore(address))}`;
  const onDefault = commandWith(command, { storeOption, checkpointOption });
  if (error !== null) {
    const message = `it is not known which store is served: ${error.message}. For the default store: ${onDefault}`;
    throw new RequestError(error.code, message, { cause: error });
  }
  const { store: served, commands } = settings as SettingsResponse;
  const isHere = isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ""));
  if (isHere && isSamePlace(address, served)) return;
  const where = isHere || !served.startsWith("sqlite:") ? "" : ", on its machine";
  const onServed = served.startsWith("memory:") ? "" : `. For that one${where}: ${commandWith(command, commands)}`;
  throw new TypeError(
    `the coordinator at ${url} serves another store than the default one: ${served}${onServed}. For the default store: ${onDefault}`,
  );
}

/** Nothing listens there. A coordinator that hangs also gives `coordinator_unreachable`. */
function isRefused({ code, cause }: RequestError): boolean {
  const { cause: reason } = (cause ?? {}) as { readonly cause?: NodeJS.ErrnoException };
  return code === "coordinator_unreachable" && reason?.code === "ECONNREFUSED";
}

/** The command as it was typed, with the store named. */
function commandWith(command: Command, context: CommandContext): string {
  return `\`${filledCommands(commandAgain(command, command.name() as StoreVerb, {}), context)}\``;
}

/** Whatever the login: the operator's user is another one than the coordinator's. */
export function isSamePlace(given: StoreAddress, served: string): boolean {
  try {
    const servedNames = placeNames(parseStoreUrl(served));
    return placeNames(given).some((name) => servedNames.includes(name));
  } catch {
    // The text comes from another process. One that is no URL names no place.
    return false;
  }
}

function placeNames(address: StoreAddress): readonly string[] {
  if (address.kind === "sqlite") return [realPathOf(address.path)];
  const { group, addresses } = placeOf(address);
  return addresses.map((text) => {
    const [, host = "", port] = /^\[?(.*?)\]?:(\d+)$/.exec(text) ?? [];
    return `${group} ${isLoopback(host) ? "localhost" : host}:${port}`;
  });
}
