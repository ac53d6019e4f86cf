/** `doctor`: what stands against leasing on this store, and what an operator should change before it does. Changes nothing. */
import { readFileSync } from "node:fs";
import { commandLine, OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { namespacesAnswerSchema, settingsAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { DEFAULT_NAMESPACE } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { CoordinatorError } from "../errors.js";
import { namespaceLost } from "../guard/guard-state.js";
import { PHASES } from "../guard/record.js";
import { isMovedSeal } from "../guard/seals.js";
import { isLoopback } from "../platform/loopback.js";
import { realPathOf } from "../platform/real-path.js";
import type { Finding, Store } from "../store.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl, placeOf, type StoreAddress } from "../stores/store-url.js";
import { askCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";
import { tokenFileOption } from "./bearer-token.js";
import { running } from "./command-io.js";
import {
  type Examined,
  examinedInWords,
  findingsInWords,
  findingsOfCertificate,
  otherStore,
  type Running,
  restInWords,
} from "./doctor-words.js";
import { coordinatorOption, storeOption } from "./options.js";
import { print, printJson } from "./print.js";
import { type Memory, memoryOf, witnessFolderOption } from "./witness-option.js";

interface Options {
  readonly store: string;
  readonly coordinator: string;
  readonly witnessFolder: string;
  readonly tokenFile?: string | undefined;
  readonly json?: boolean;
}

export function doctorCommand(): Command {
  return new Command("doctor")
    .summary("look whether the store could lose or repeat what it holds")
    .description(
      "Examines the servers and records of a store: --store, or without it the one that the running coordinator serves. Shows what ends " +
        "leasing (the exit code is then 1), what is unwise, and the line of configuration that fixes it; then the settings of the " +
        "coordinator that serves this store, where they differ from the defaults. Finds more with an operator's user in --store. Changes nothing.",
    )
    .addOption(storeOption())
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(witnessFolderOption())
    .addHelpText("after", "\nExamples:\n  $ callnumber doctor --store redis://operator:PASSWORD@127.0.0.1:6379")
    .action(async (options: Options, command: Command) => {
      const isStoreGiven = command.getOptionValueSource("store") !== "default";
      const examined = await examine(options, isStoreGiven);
      const findings = [...examined.findings, ...findingsOfCertificate(examined, Date.now())];
      const isIll = findings.some(({ code }) => code !== undefined);
      if (isIll) running().exitCode = 1;
      if (options.json) printJson({ ...asJson(examined), isIll, findings });
      else print([examinedInWords(examined), ...findingsInWords(findings), ...restInWords(examined)].join("\n"));
    });
}

/** @throws AskError without --store when a coordinator runs and does not report its store; CoordinatorError when the store can't be opened. */
async function examine(options: Options, isStoreGiven: boolean): Promise<Examined> {
  const address = parseStoreUrl(options.store);
  const memory = memoryOf(address, options.witnessFolder);
  const running = await askRunning(options);
  const about = { store: describeStore(address), running, isSeenByCoordinator: false, coreDumps: coreDumps() };
  const { answer, refusal } = running;
  if (answer === undefined) {
    // The store that is served may be another one than the default one.
    if (!isStoreGiven && !NO_COORDINATOR.has(refusal.code)) throw notReported(options.coordinator, refusal);
    return { ...about, isServed: false, findings: await findingsAt(address, memory) };
  }
  const isServed = !isStoreGiven || isSamePlace(options.store, answer.store);
  // While a coordinator runs, no other process can open its embedded store.
  if (isServed && (!isStoreGiven || address.kind === "sqlite")) {
    const findings = [...answer.findings, ...(await findingsOfGuards(options, answer.findings))];
    return { ...about, store: answer.store, isServed, isSeenByCoordinator: true, findings };
  }
  if (!isServed && !options.json) print(otherStore(options.coordinator, answer.store));
  return { ...about, isServed, findings: await findingsAt(address, memory) };
}

/** Nothing answers there, or something else than a coordinator. */
const NO_COORDINATOR: ReadonlySet<string> = new Set(["coordinator_unreachable", "answer_not_understood"]);

function notReported(url: string, { code, message }: AskError): AskError {
  return new AskError(
    code,
    `doctor can't examine the store that is served: the coordinator at ${url} does not report it (${message}). ` +
      "Pass --store, or a token of role operator",
  );
}

/** None is asked for more than a word: whether one runs is no finding about the store. */
async function askRunning(options: Options): Promise<Running> {
  const url = options.coordinator;
  try {
    const answer = await askCoordinator(options, OPERATOR_ROUTES.settings, settingsAnswerSchema);
    return { url, answer, refusal: undefined };
  } catch (error) {
    if (!(error instanceof AskError)) throw error;
    return { url, answer: undefined, refusal: error };
  }
}

/** Whoever logs in: the operator's user is another one than the coordinator's. */
function isSamePlace(given: string, served: string): boolean {
  const servedNames = namesOfPlace(servedAddress(served));
  return namesOfPlace(parseStoreUrl(given)).some((name) => servedNames.includes(name));
}

/** The text comes from another process: one that is no URL, as that of a memory store, names no place. */
function servedAddress(text: string): StoreAddress {
  try {
    return parseStoreUrl(text);
  } catch {
    return { kind: "memory" };
  }
}

function namesOfPlace(address: StoreAddress): readonly string[] {
  const { group, addresses } = placeOf(address);
  if (address.kind === "sqlite") return [realPathOf(address.path)];
  return addresses.map((text) => {
    const [, host = "", port] = /^\[?(.*?)\]?:(\d+)$/.exec(text) ?? [];
    return `${group} ${isLoopback(host) ? "localhost" : host}:${port}`;
  });
}

/** Of namespaces that do not lease, why; what is known of the servers is not repeated. */
async function findingsOfGuards(options: Options, known: readonly Finding[]): Promise<readonly Finding[]> {
  const isKnown = (code: unknown) => known.some((finding) => finding.code === code);
  const { namespaces } = await askCoordinator(options, OPERATOR_ROUTES.namespaces, namespacesAnswerSchema).catch(
    (error: unknown) => {
      if (error instanceof AskError && isKnown(error.code)) return { namespaces: undefined };
      throw error;
    },
  );
  if (namespaces === undefined) return [];
  if (namespaces.length === 0) return [NO_NAMESPACE];
  return namespaces.flatMap(({ namespace, guard: { state, code, explanation } }) => {
    if (state === "open" || code === null || isKnown(code)) return [];
    const remedy = `\`${commandLine("status", namespace)}\``;
    return [{ code, what: `namespace ${namespace}: ${explanation}`, remedy, namespaces: [namespace] }];
  });
}

function asJson({ store, running, isServed, isSeenByCoordinator, coreDumps: dumps }: Examined): object {
  const { url, answer, refusal } = running;
  return {
    store,
    seenBy: isSeenByCoordinator ? "coordinator" : "doctor",
    servedStore: answer?.store ?? null,
    running: answer === undefined || !isServed ? null : { url, ...answer },
    notRunning: refusal === undefined ? null : { url, code: refusal.code, message: refusal.message },
    coreDumps: dumps ?? null,
  };
}

async function findingsAt(address: StoreAddress, { mustNotBeLost, remembered }: Memory): Promise<readonly Finding[]> {
  const { store } = await openStore(address, { create: false, mustNotBeLost });
  try {
    return [...(await store.preflight({ asOperator: true })), ...(await findingsOfRecords(store, remembered()))];
  } finally {
    await store.close();
  }
}

/** A record that can't be read is no reason for the server to be ill, and yet nothing is leased of it. */
async function findingsOfRecords(
  store: Store,
  remembered: ReturnType<Memory["remembered"]>,
): Promise<readonly Finding[]> {
  const namespaces = await store.listNamespaces();
  const findings = await Promise.all(namespaces.map((namespace) => findingsOf(store, namespace)));
  const lost = [...remembered].filter(([namespace]) => !namespaces.includes(namespace));
  const ofLost = lost.map(([namespace, one]) => findingOfFault(namespaceLost(namespace, one), namespace));
  return namespaces.length + lost.length > 0 ? [...findings.flat(), ...ofLost] : [NO_NAMESPACE];
}

const NO_NAMESPACE: Finding = {
  code: "namespace_not_initialised",
  what: "the store holds no namespace",
  remedy: `find the right store; if this is a new one: \`${commandLine("init", DEFAULT_NAMESPACE)}\``,
};

async function findingsOf(store: Store, namespace: string): Promise<readonly Finding[]> {
  const about = { override: undefined, namespaces: [namespace] };
  try {
    const { phase, seal } = await store.readNamespace(namespace);
    if (phase === PHASES.open) return [];
    const code = phase === PHASES.claimed ? "store_claimed" : isMovedSeal(seal) ? "store_moved" : "store_forked";
    const { what, remedy } = NOT_OPEN[code];
    return [{ code, what: `namespace ${namespace}: ${what}`, remedy: remedy(namespace), ...about }];
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return [findingOfFault(error, namespace)];
  }
}

const NOT_OPEN = {
  store_claimed: {
    what: "a doubt was claimed and not yet settled",
    remedy: () => "start a coordinator: it settles it",
  },
  store_moved: { what: "it was moved to another store", remedy: () => "point the coordinator at the new store" },
  store_forked: {
    what: "two copies of the store were met",
    remedy: (namespace: string) =>
      `stop one of them permanently, then recover the other: \`${commandLine("recover", namespace)}\``,
  },
} as const;

function findingOfFault({ code, message }: CoordinatorError, namespace: string): Finding {
  const remedy = `\`${commandLine("recover", namespace)}\``;
  return { code, what: message, remedy, override: undefined, namespaces: [namespace] };
}

/**
 * Whether a crash of a process that is started as this one was leaves a core file: it would hold passwords and keys. Undefined where
 * the system does not tell.
 */
function coreDumps(): string | undefined {
  try {
    const [, softLimit] = /^Max core file size\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    const pattern = readFileSync("/proc/sys/kernel/core_pattern", "utf8").trim();
    // Given to a program, they are made whatever the limit says.
    if (pattern.startsWith("|")) return `up to ${pattern.slice(1).split(" ", 1)[0]}`;
    if (softLimit === undefined) return undefined;
    return softLimit === "0" ? "off" : "on";
  } catch {
    return undefined;
  }
}
