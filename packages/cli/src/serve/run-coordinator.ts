/** Runs a coordinator until it is stopped. */
import { accessSync, constants, readdirSync } from "node:fs";
import {
  Coordinator,
  CoordinatorError,
  createServer,
  describeStore,
  LedgerFiles,
  LedgerTrimmer,
  type OpenStore,
  ProcessAlarms,
  parseStoreUrl,
  readTlsMaterial,
} from "@callnumber/coordinator";
import { isEmbedded } from "@callnumber/coordinator/internal";
import { escapeLines } from "@callnumber/coordinator/internal/text";
import { checkpointsOf } from "@callnumber/coordinator/operator";
import { type CommandContext, commandLine, filledCommands, ROUTES } from "@callnumber/protocol/api";
import type { Setting } from "@callnumber/protocol/schemas";
import { formatNewNamespace } from "../commands/init.js";
import { invocation, RELEASE } from "../invocation.js";
import { untilHungUp, untilStopped } from "../signals.js";
import { openStoreWithCheckpoints } from "../store-options.js";
import { type AccessOptions, accessOf, type LimitOptions, limitsOf, rejectOpenAccess } from "./access.js";
import { type LogOptions, openLog } from "./log.js";
import { exposureOf, reloadTlsOnHangUp, type TlsOptions, tlsPathsOf } from "./tls.js";

export interface ServeOptions extends AccessOptions, LimitOptions, LogOptions, TlsOptions {
  readonly store: string;
  readonly namespace: string;
  readonly port: number;
  readonly create?: boolean;
  readonly checkpointDir: string;
  readonly ledgerDir?: string;
  readonly ignoreFindings: readonly string[];
  readonly allowNetworkFileSystem?: boolean;
  readonly publicInspect?: boolean;
  readonly maxConcurrentLeases: number;
  readonly maxConnections: number;
}

/** How the command was called. */
interface Call {
  /** The namespace was named. */
  readonly mustServeNamespace: boolean;
  readonly settings: readonly Setting[];
  /** Fills in the commands in its log, and in its responses to operators. */
  readonly commands: CommandContext;
}

export async function runCoordinator(options: ServeOptions, call: Call): Promise<void> {
  const { mustServeNamespace, settings, commands } = call;
  const command = invocation();
  const { stderr } = command.io;
  // With --json there is the log alone, which has the same events.
  const printError = (text: string) =>
    void (options.json || stderr.write(`${escapeLines(filledCommands(text, commands))}\n`));
  // Leasing continues when the terminal is gone or the disk full.
  const ignore = () => {};
  stderr.on("error", ignore);
  command.onEnd(() => stderr.off("error", ignore));
  const { host, port, namespace } = options;
  rejectOpenAccess(options);
  const tlsPaths = tlsPathsOf(options);
  const limits = limitsOf(options);
  const address = parseStoreUrl(options.store);
  const create = options.create ?? (isEmbedded(address) && stderr.isTTY) ?? false;
  if (options.create && !isEmbedded(address)) {
    throw new TypeError(
      `--create makes the file of an embedded store. For a server: \`${commandLine("init", namespace)}\``,
    );
  }
  const checkpoints = checkpointsOf(address, options.checkpointDir);
  const { events, recentEvents, ...log } = openLog(options, commands, printError);
  const processAlarms = new ProcessAlarms();
  events.subscribe(processAlarms.take);
  const { greeting, ...access } = accessOf(options, events, printError);
  const tls = tlsPaths && readTlsMaterial(tlsPaths, Date.now());
  if (options.ledgerDir !== undefined) assertLedgerDirectory(options.ledgerDir);
  printError(greeting);
  const hungUp = untilHungUp({
    reloads: options.tokensFile !== undefined || tls !== undefined,
    log: events,
    printError,
  });
  const { allowNetworkFileSystem = false } = options;
  const opened = await openStoreWithCheckpoints(address, checkpoints, { create, allowNetworkFileSystem });
  try {
    const coordinator = new Coordinator({
      store: opened.store,
      name: options.coordinatorName,
      log: events,
      checkpointFileOf: checkpoints.checkpointFileOf,
      checkpointedNamespaces: checkpoints.namespaces(),
      overrides: options.ignoreFindings,
      startLoops: (name) => limits.startLoops(name),
      processAlarms: () => processAlarms.all(),
    });
    const place = describeStore(address);
    const namespaces = await prepareNamespaces(coordinator, opened, namespace, place, printError);
    // Named, and missing: fails now, instead of for each importer later.
    if (mustServeNamespace && !namespaces.includes(namespace)) await coordinator.status(namespace);
    let onLoadError = (_error: unknown) => {};
    const loadFailed = new Promise<never>((_, reject) => {
      onLoadError = reject;
    });
    const server = createServer({
      coordinator,
      release: RELEASE,
      events,
      recentEvents,
      ...access,
      allowedHosts: options.allowHost,
      listenWithoutTokens: options.listenWithoutTokens ?? false,
      listenWithoutTls: options.listenWithoutTls ?? false,
      limits,
      maxConcurrentLeases: options.maxConcurrentLeases,
      publicInspect: options.publicInspect ?? false,
      maxConnections: options.maxConnections,
      // Not without tokens, where any client may come.
      startedWith: access.isForOperators ? { store: place, startedAtMs: Date.now(), settings, commands } : undefined,
      tls,
      onLoadError,
    });
    const url = await server.listen({ host, port }).catch(async (error: NodeJS.ErrnoException) => {
      await server.stop();
      throw listenError(host, port, error);
    });
    // Before the lines that a supervisor or a person waits for: a signal that follows them must not end the process at once.
    const stopped = untilStopped();
    for (const text of exposureOf(options, tls)) printError(text);
    printError(`listening on ${url}, stop with Ctrl-C`);
    printError(`the console: ${new URL(ROUTES.console, url)}`);
    events.info({ url, store: place, release: RELEASE }, "start");
    const endTlsReload =
      tlsPaths && tls && reloadTlsOnHangUp(tlsPaths, tls, (material) => server.useTls(material), events);
    coordinator.startHeartbeat();
    const { ledgerDir } = options;
    const files = ledgerDir === undefined ? undefined : new LedgerFiles(ledgerDir);
    const trimmer = new LedgerTrimmer({ store: opened.store, files, log: events });
    trimmer.start();
    const reason = await Promise.race([stopped, hungUp, loadFailed]);
    printError(`${reason}: finishing requests in flight`);
    await server.stop();
    endTlsReload?.();
    await trimmer.stop();
    recentEvents.close();
    await coordinator.stopHeartbeat();
    events.info({ reason }, "stop");
  } finally {
    await opened.store.close();
    await log.close();
  }
}

/**
 * Prints the store and its namespaces. In a new store makes the first namespace, and warns of that. Returns the namespaces that are
 * served, now or once they are repaired. @throws CoordinatorError when no namespace leases; not for one that was moved away.
 */
async function prepareNamespaces(
  coordinator: Coordinator,
  { isNew, store }: OpenStore,
  namespace: string,
  place: string,
  printError: (text: string) => void,
): Promise<readonly string[]> {
  printError(`Callnumber ${RELEASE}, store ${place}`);
  if (isNew) {
    printError(`This is a new store. ${formatNewNamespace(await coordinator.initNamespace(namespace), place)}`);
    return [namespace];
  }
  const { namespaces, unavailable } = await coordinator.assertReady().catch((error: unknown) => {
    // What was leased can still be reported on and looked up: that is no reason to end.
    if (!(error instanceof CoordinatorError) || error.code !== "namespace_moved") throw error;
    printError(`Nothing is leased here (${error.code}): ${error.message}`);
    return { namespaces: [], unavailable: [] };
  });
  if (namespaces.length > 0) printError(`namespaces: ${namespaces.join(", ")}`);
  const next = store.isExclusive
    ? "Stop this coordinator, repair the namespace, start it again"
    : "It is leased from as soon as it is repaired, without a restart";
  for (const { namespace: name, error } of unavailable) {
    const then = error.code === "namespace_moved" ? "" : `. ${next}`;
    printError(`namespace ${name} does not lease (${error.code}): ${error.message}${then}`);
  }
  return [...namespaces, ...unavailable.map(({ namespace: name }) => name)];
}

/** A coordinator never makes it: in the place of a disk that is not mounted, it would fill another one. */
function assertLedgerDirectory(path: string): void {
  try {
    readdirSync(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { message } = error as Error;
    throw new TypeError(`--ledger-dir ${path} can't be used: ${message}. Make it, or mount its disk`, { cause: error });
  }
}

const LISTEN_ERRORS: ReadonlyMap<string | undefined, string> = new Map([
  ["EADDRNOTAVAIL", "this machine has no such address; pass --host with one of its own, or 0.0.0.0 for all of them"],
  ["ENOTFOUND", "this name is unknown; pass --host with an address of this machine"],
  ["EACCES", "this user may not listen there; pass --port with one above 1023"],
]);

function listenError(host: string, port: number, cause: NodeJS.ErrnoException): Error {
  if (cause.code === "EADDRINUSE") {
    const message = `port ${port} on ${host} is in use, perhaps by another coordinator. Pass another --port (0: any free one)`;
    return Object.assign(new Error(message, { cause }), { code: "port_in_use" });
  }
  const reason = LISTEN_ERRORS.get(cause.code);
  return reason === undefined ? cause : new TypeError(`can't listen on ${host}, port ${port}: ${reason}`, { cause });
}
