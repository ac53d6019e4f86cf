/**
 * Which store a command acts on, what is remembered of it, and the commands that it prints to be run again. A command that names no store
 * must not act on another one than the coordinator at hand serves.
 */

import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { platform } from "node:process";
import { commandUrlOf, NODE_COUNT_MAX, standsFor, withoutLogin } from "@callnumber/coordinator/internal";
import { isLoopback, readPrivateFile, realPathOf } from "@callnumber/coordinator/internal/machine";
import {
  type Checkpoints,
  checkpointsOf,
  describeStore,
  type OpenStore,
  openStore,
  parseStoreUrl,
  placeOf,
  type StoreAddress,
} from "@callnumber/coordinator/operator";
import {
  type CommandContext,
  type CommandOptions,
  commandLine,
  filledCommands,
  type NamedRun,
  ROUTES,
  type StoreVerb,
  shellWord,
} from "@callnumber/protocol/api";
import { type SettingsResponse, settingsResponseSchema } from "@callnumber/protocol/schemas";
import type { Command, Option } from "commander";
import * as z from "zod";
import { invocation, redactSecrets } from "./invocation.js";
import {
  addOptions,
  type CoordinatorOptions,
  checkedOption,
  coordinatorOptions,
  grouped,
  STORE_GROUP,
  setting,
  switchOption,
  wholeNumber,
} from "./options.js";
import { RequestError, requestJson } from "./requests.js";

export interface StoreOptions {
  readonly store: string;
  readonly checkpointDir: string;
  readonly json?: boolean;
}

/** The options of a command that acts on one namespace of a store. */
export interface StoreNamespaceOptions extends StoreOptions {
  readonly namespace: string;
}

/**
 * Adds `--store`, `--store-file` and the other options to a command, and fills in the commands that it prints. The default store is one
 * for each user, whatever the working directory: another directory must not be another store that begins at run 1.
 */
export function addStoreOptions(command: Command, options: readonly Option[]): Command {
  const description = "where the state is kept: sqlite:PATH, postgres://HOST/DB, redis://HOST:PORT/DB, memory:";
  const store = setting(checkedOption("--store <url>", description)).default(
    `sqlite:${join(stateHome().path, "callnumber", "store.db")}`,
    `sqlite:${stateHome().shown}/callnumber/store.db`,
  );
  const place = grouped(STORE_GROUP, store, setting(urlFileOption("store")));
  return addOptions(command, [...options, ...place]).hook("preAction", (_, action) => {
    for (const name of ["store", "to"]) readUrlFile(action, name);
    try {
      invocation().context = commandContextOf(action);
    } catch {
      // The command itself reports a URL that can't be read.
    }
  });
}

/** By default next to the default store's directory, not in it: both must not be restored together. */
export function checkpointDirOption(): Option {
  const description = "directory for checkpoints of what was leased; not in the store's directory";
  const option = setting(checkedOption("--checkpoint-dir <path>", description)).helpGroup(STORE_GROUP);
  return option.default(
    join(stateHome().path, "callnumber-checkpoints"),
    `${stateHome().shown}/callnumber-checkpoints`,
  );
}

/** `shown`: the path with a variable of the shell, for the help. It is short, and the same on every machine. */
function stateHome(): { readonly path: string; readonly shown: string } {
  const { env } = invocation().io;
  const { XDG_STATE_HOME: given, [platform === "win32" ? "USERPROFILE" : "HOME"]: home = homedir() } = env;
  // The XDG specification ignores a relative path.
  return given !== undefined && isAbsolute(given)
    ? { path: given, shown: "$XDG_STATE_HOME" }
    : { path: join(home, ".local", "state"), shown: "$HOME/.local/state" };
}

export function nodesOption(description: string): Option {
  return checkedOption("--nodes <n>", description, wholeNumber(1, NODE_COUNT_MAX));
}

export function confirmClockOption(): Option {
  return switchOption("confirm-clock", "confirm that the clock is right, after 30 days without a heartbeat");
}

/** Each finding of the preflight has a name. Accepting one accepts no other. */
export function ignoreFindingsOption(): Option {
  const names = z
    .string()
    .regex(/^[a-z-]+(,[a-z-]+)*$/, "must be names of findings, with commas between them")
    .transform((text) => text.split(","));
  const description = "names of accepted findings of callnumber doctor, with commas";
  return checkedOption("--ignore-findings <names>", description, names).default([], "none").helpGroup(STORE_GROUP);
}

/**
 * Opens a store. Fails when the store is missing and its checkpoints show that it leased runs. With `create` makes what is missing, the
 * checkpoint directory first: no store is made that could have no checkpoint.
 */
export function openStoreWithCheckpoints(
  address: StoreAddress,
  checkpoints: Checkpoints,
  { create = false, ...options }: { readonly create?: boolean; readonly allowNetworkFileSystem?: boolean } = {},
): Promise<OpenStore> {
  const mustNotBeLost = () => {
    checkpoints.mustNotBeLost();
    if (create) checkpoints.makeDirectory();
  };
  return openStore(address, { create, mustNotBeLost, ...options });
}

/** Opens a store that must exist. @throws TypeError for a memory store, with the reason `whyNoMemory`. */
export async function openExistingStore({ store: url, checkpointDir }: StoreOptions, whyNoMemory: string) {
  const address = persistentAddress(url, whyNoMemory);
  const checkpoints = checkpointsOf(address, checkpointDir);
  const { store } = await openStoreWithCheckpoints(address, checkpoints);
  return { address, store, checkpoints };
}

export function persistentAddress(url: string, whyNoMemory: string): StoreAddress {
  const address = parseStoreUrl(url);
  if (address.kind === "memory") throw new TypeError(`a memory store ends with its process: ${whyNoMemory}`);
  return address;
}

/** `--NAME-file`: before the action, the URL in the file replaces the option `--NAME`. */
export function urlFileOption(name: string): Option {
  return checkedOption(`--${name}-file <path>`, `file that holds the URL of --${name}; others may not read it`);
}

/** Passwords stay off the command line. */
function readUrlFile(action: Command, name: string): void {
  const path: unknown = action.getOptionValue(`${name}File`);
  const [fileSource, urlSource] = [action.getOptionValueSource(`${name}File`), action.getOptionValueSource(name)];
  if (urlSource === "cli" && fileSource !== "cli") {
    if (name === "store") action.setOptionValueWithSource(name, withLogin(action.getOptionValue(name), path), "cli");
    return;
  }
  if (typeof path !== "string") return;
  if (fileSource === urlSource) {
    throw new TypeError(`--${name} and --${name}-file both name the store: give one of them`);
  }
  action.setOptionValueWithSource(name, storeUrlIn(path), fileSource === "cli" ? "file" : fileSource);
}

/** Returns the URL of the environment where the typed one stands for it, as messages print it: without its password. Else the typed one. */
function withLogin(typed: string, path: unknown): string {
  try {
    const given = invocation().io.env["CALLNUMBER_STORE"] ?? (typeof path === "string" ? storeUrlIn(path) : typed);
    return standsFor(parseStoreUrl(typed), parseStoreUrl(given)) ? given : typed;
  } catch {
    // The command itself reports a URL that it can't read, and does not need the environment's.
    return typed;
  }
}

/** @throws TypeError for a file that can't be read, that others may read, or that holds anything but one line. */
function storeUrlIn(path: string): string {
  const text = readPrivateFile(path, "the store file").trim();
  if (text === "" || /\s/.test(text)) throw new TypeError(`the store file ${path} must hold one line, the store's URL`);
  return text;
}

/** Returns what fills in the commands that are printed. @throws TypeError for a store's URL that can't be read. */
export function commandContextOf(command: Command): CommandContext {
  const directory: unknown = command.getOptionValue("checkpointDir");
  const isNamed = typeof directory === "string" && command.getOptionValueSource("checkpointDir") !== "default";
  const storeFile: unknown = command.getOptionValueSource("store") === "file" && command.getOptionValue("storeFile");
  const address = parseStoreUrl(command.getOptionValue("store"));
  // A coordinator's URL, and its file, have a user that may not recover.
  const isCoordinator = command.name() === "serve";
  return {
    storeOption:
      typeof storeFile === "string" && !isCoordinator
        ? `--store-file ${shellWord(resolve(storeFile))}`
        : `--store ${shellWord(commandUrlOf(isCoordinator ? withoutLogin(address) : address))}`,
    checkpointOption: isNamed ? `--checkpoint-dir ${shellWord(resolve(directory))}` : "",
  };
}

const isGiven = (part: number | undefined) => part !== undefined;

/** Filled in when the command is printed, whatever gave it, without a password. */
const FILLED_IN: ReadonlySet<string> = new Set(["store", "storeFile", "namespace", "checkpointDir"]);

/** Returns the command as it was typed, with more options, without passwords. Values of the environment and defaults apply again when it is run. */
export function commandAgain(command: Command, verb: StoreVerb, more: CommandOptions): string {
  const typed = command.options.flatMap((option): [string, CommandOptions[string]][] => {
    const name = option.attributeName();
    if (FILLED_IN.has(name) || command.getOptionValueSource(name) !== "cli") return [];
    const given: CommandOptions[string] | string[] | NamedRun = command.getOptionValue(name);
    const value = Array.isArray(given) ? given.join(",") : given;
    if (typeof value === "object") return [[option.name(), [value.version, value.run].filter(isGiven).join("/")]];
    return [[option.name(), typeof value === "string" ? redactSecrets(value) : value]];
  });
  return commandLine(verb, command.getOptionValue("namespace"), { ...Object.fromEntries(typed), ...more });
}

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
