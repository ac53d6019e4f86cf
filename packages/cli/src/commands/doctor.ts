/** `doctor`: what prevents leasing on this store, and what an operator should change before it does. Changes nothing. */
import { NO_NAMESPACE, recordFindings, remedyIn } from "@callnumber/coordinator/internal";
import { escapeAndShorten } from "@callnumber/coordinator/internal/text";
import {
  checkpointsOf,
  describeStore,
  type Finding,
  parseStoreUrl,
  type StoreAddress,
} from "@callnumber/coordinator/operator";
import { ROUTES } from "@callnumber/protocol/api";
import { namespacesResponseSchema } from "@callnumber/protocol/schemas";
import { Command } from "commander";
import { nearExpiry } from "../certificate-expiry.js";
import { invocation } from "../invocation.js";
import { type CoordinatorOptions, coordinatorOptions } from "../options.js";
import { formatTime, print, printJson } from "../output.js";
import { RequestError, requestJson } from "../requests.js";
import {
  addStoreOptions,
  checkpointDirOption,
  isSamePlace,
  openStoreWithCheckpoints,
  type RunningCoordinator,
  runningCoordinator,
  type StoreOptions,
} from "../store-options.js";

type Options = StoreOptions & CoordinatorOptions;

export function makeCommand(): Command {
  const command = new Command("doctor")
    .description(
      "Examines the servers and records of a store. Shows what ends leasing (the exit code is then 1), what is unwise, and the line of " +
        "configuration that fixes it; then the settings of the coordinator that serves this store, where they differ from the defaults. " +
        "Finds more with an operator's user in --store. Changes nothing.\n\n" +
        "Examines the store of --store, whatever --coordinator serves. With --coordinator alone, examines the store of that coordinator, or " +
        "fails. With neither, examines the store of the coordinator on this machine; if there is none, the default store. Variables count as options.",
    )
    .addHelpText("after", "\nExamples:\n  $ callnumber doctor --store redis://operator:PASSWORD@127.0.0.1:6379")
    .action(doctor);
  return addStoreOptions(command, [...coordinatorOptions(), checkpointDirOption()]);
}

interface Examination {
  /** Without secrets. */
  readonly store: string;
  readonly coordinator: RunningCoordinator;
  /** By the coordinator that responds. */
  readonly isServed: boolean;
  /** An embedded store, which only its coordinator can open; or no store was named. */
  readonly isSeenByCoordinator: boolean;
  readonly findings: readonly Finding[];
}

/** What the command line or the environment names. */
interface Given {
  readonly isStoreGiven: boolean;
  readonly isCoordinatorGiven: boolean;
}

async function doctor(options: Options, command: Command): Promise<void> {
  const isGiven = (name: keyof Options) => command.getOptionValueSource(name) !== "default";
  const given = { isStoreGiven: isGiven("store"), isCoordinatorGiven: isGiven("coordinator") };
  const examination = await examine(options, given);
  const findings = [...examination.findings, ...certificateFindings(examination)];
  const isIll = findings.some(({ code }) => code !== undefined);
  if (isIll) invocation().exitCode = 1;
  if (options.json) printJson({ ...asJson(examination), isIll, findings });
  else print([formatPlace(examination), ...formatFindings(findings), ...formatCoordinator(examination)].join("\n"));
}

/**
 * Examines the given store; else the one of the coordinator, which must report it if it is given or runs; else the default store.
 * @throws RequestError when the coordinator does not report its store; CoordinatorError when the store can't be opened.
 */
async function examine(options: Options, { isStoreGiven, isCoordinatorGiven }: Given): Promise<Examination> {
  const address = parseStoreUrl(options.store);
  const coordinator = await runningCoordinator(options);
  const { url, settings, error } = coordinator;
  const about = { store: describeStore(address), coordinator, isServed: false, isSeenByCoordinator: false };
  // The served store may not be the default one.
  if (error !== null && !isStoreGiven && (isCoordinatorGiven || !NO_COORDINATOR.has(error.code))) {
    throw new RequestError(error.code, withoutStore(error, url));
  }
  if (settings === null) {
    const findings = await storeFindings(address, options).catch((found: Error & { code?: string }) => {
      if (isStoreGiven || found.code !== "store_not_found") throw found;
      throw new RequestError(found.code, `${error?.message}. There is no default store either: pass --store`);
    });
    return { ...about, findings };
  }
  const isServed = !isStoreGiven || isSamePlace(address, settings.store);
  // While a coordinator runs, no other process can open its embedded store.
  if (isServed && (!isStoreGiven || address.kind === "sqlite")) {
    const findings = [...settings.findings, ...(await guardFindings(options, settings.findings))];
    return { ...about, store: settings.store, isServed, isSeenByCoordinator: true, findings };
  }
  if (!isServed && !options.json)
    print(`The coordinator at ${url} serves another store: ${escapeAndShorten(settings.store)}`);
  return { ...about, isServed, findings: await storeFindings(address, options) };
}

/** Nothing responds there, or not a coordinator. */
const NO_COORDINATOR: ReadonlySet<string> = new Set(["coordinator_unreachable", "invalid_response"]);

function withoutStore({ code, message }: RequestError, url: string): string {
  if (code === "coordinator_unreachable") return `${message}, or pass --store`;
  const token = code === "invalid_response" ? "" : ", or a token of role operator";
  return `the coordinator at ${url} does not report its store (${message}). Pass --store${token}`;
}

async function storeFindings(address: StoreAddress, { checkpointDir }: Options): Promise<readonly Finding[]> {
  const checkpoints = checkpointsOf(address, checkpointDir);
  const { store } = await openStoreWithCheckpoints(address, checkpoints);
  try {
    const ofServer = await store.preflight({ asOperator: true });
    const known = new Set(ofServer.map(({ code }) => code));
    return [...ofServer, ...(await recordFindings(store, checkpoints)).filter(({ code }) => !known.has(code))];
  } finally {
    await store.close();
  }
}

/** Why namespaces do not lease, as far as the findings about the servers do not include it. */
async function guardFindings(options: Options, known: readonly Finding[]): Promise<readonly Finding[]> {
  const isKnown = (code: unknown) => known.some((finding) => finding.code === code);
  try {
    const { namespaces } = await requestJson(options, ROUTES.namespaces, namespacesResponseSchema);
    if (namespaces.length === 0) return [NO_NAMESPACE];
    return namespaces.flatMap(({ namespace, guard: { state, code, explanation } }) => {
      if (state === "active" || code === null || isKnown(code)) return [];
      const remedy = remedyIn(explanation) ?? "see the log of the coordinator";
      return [{ code, what: `namespace ${namespace}: ${explanation}`, remedy, namespaces: [namespace] }];
    });
  } catch (error) {
    if (error instanceof RequestError && isKnown(error.code)) return [];
    throw error;
  }
}

/** Warns of a certificate that expires within 14 days, or has expired. */
function certificateFindings({ coordinator, isServed }: Examination): readonly Finding[] {
  const endsAtMs = coordinator.settings?.certificateEndsAtMs ?? null;
  const expiry = endsAtMs === null || !isServed ? undefined : nearExpiry(endsAtMs);
  if (expiry === undefined) return [];
  const remedy = "put a new certificate and its key in their place, then send SIGHUP to the coordinator";
  return [{ what: expiry.description, remedy }];
}

function asJson({ store, coordinator, isServed, isSeenByCoordinator }: Examination): object {
  const { url, settings, error } = coordinator;
  return {
    store,
    seenBy: isSeenByCoordinator ? "coordinator" : "doctor",
    servedStore: settings?.store ?? null,
    running: settings === null || !isServed ? null : { url, ...settings },
    notRunning: error === null ? null : { url, code: error.code, message: error.message },
  };
}

function formatPlace({ store, coordinator, isSeenByCoordinator }: Examination): string {
  return isSeenByCoordinator ? `${escapeAndShorten(store)}, as the coordinator at ${coordinator.url} sees it` : store;
}

function formatFindings(findings: readonly Finding[]): readonly string[] {
  if (findings.length === 0) return ["  nothing found: it can be leased from, and nothing unwise is seen"];
  return findings.flatMap(({ code, what, remedy, override }) => [
    `  ${code === undefined ? "unwise" : `REFUSED (${code})`}: ${what}`,
    `      change     ${remedy}`,
    ...(override === undefined ? [] : [`      or ignore  start the coordinator with --ignore-findings ${override}`]),
  ]);
}

/** Shows settings other than the defaults, of the coordinator that serves the store. The text comes from another machine. */
function formatCoordinator({ coordinator, isServed }: Examination): readonly string[] {
  const { url, settings: response, error } = coordinator;
  // The message names the coordinator already.
  if (error?.code === "coordinator_unreachable") return [error.message];
  if (error !== null)
    return [`the coordinator at ${url} does not report its settings: ${error.message} (${error.code})`];
  if (response === null || !isServed) return [];
  const { release, startedAtMs, settings, certificateEndsAtMs } = response;
  const changed = settings.filter(({ from }) => from !== "default");
  const width = Math.max(0, ...changed.map(({ name }) => name.length));
  return [
    `the coordinator at ${url}, release ${escapeAndShorten(release)}, has run since ${formatTime(startedAtMs)} with ${changed.length === 0 ? "the default settings" : "the defaults but for:"}`,
    ...changed.map(
      ({ name, value, from }) =>
        `  ${escapeAndShorten(name).padEnd(width)}  ${escapeAndShorten(value ?? "not set")} (${from})`,
    ),
    ...(certificateEndsAtMs === null ? [] : [`TLS certificate: until ${formatTime(certificateEndsAtMs)}`]),
  ];
}
