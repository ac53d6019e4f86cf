/** Runs a coordinator as `serve` was told to, until it is told to stop. */
import { createServer as createProbe } from "node:net";
import {
  type CommandContext,
  commandLine,
  filledCommands,
  OPERATOR_ROUTES,
  type Setting,
} from "@callnumber/protocol/operator";
import { pino } from "pino";
import { Coordinator } from "../coordinator.js";
import { CALLER_EVENTS, EventHub, EventSuppressor } from "../events/events.js";
import { RecentEvents } from "../events/recent-events.js";
import { filledLine } from "../http/filled-json.js";
import { createServer } from "../http/server.js";
import { SILENT_LOG } from "../log.js";
import { LedgerFiles, LedgerTrimmer } from "../retention/ledger-trimmer.js";
import { type OpenStore, openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl, type StoreAddress } from "../stores/store-url.js";
import { escapeJson, escapeLines } from "../text.js";
import { running } from "./command-io.js";
import { untilHungUp } from "./hang-up.js";
import { announcement } from "./init-command.js";
import { LogDestination } from "./log-destination.js";
import { RELEASE } from "./release.js";
import { type LimitOptions, limitsOf } from "./serve-limits.js";
import { exposureOf, followTlsFiles, readTls, type TlsOptions, tlsPathsOf } from "./serve-tls.js";
import { type AdmissionOptions, admissionOf, mustKeepStrangersOut } from "./serve-tokens.js";
import { terminalLog } from "./terminal-log.js";
import { untilStopped } from "./until-stopped.js";
import { memoryOf } from "./witness-option.js";

export interface ServeOptions extends AdmissionOptions, LimitOptions, TlsOptions {
  readonly store: string;
  readonly namespace: string;
  readonly port: number;
  readonly name: string;
  readonly logLevel?: string;
  readonly create?: boolean;
  readonly json?: boolean;
  readonly witnessFolder: string;
  readonly ledgerDir?: string;
  readonly accept: readonly string[];
  readonly allowNetworkFileSystem?: boolean;
  readonly publicInspect?: boolean;
}

/** Words for the person at the terminal. */
type Say = (text: string) => void;

/** What the words of the command say beside their values. */
interface Typed {
  /** The namespace was asked for by name. */
  readonly mustServeNamespace: boolean;
  readonly settings: readonly Setting[];
  /** For the commands in its log, and in what it answers to operators. */
  readonly commands: CommandContext;
}

export async function serve(options: ServeOptions, { mustServeNamespace, settings, commands }: Typed): Promise<void> {
  const command = running();
  const { stdout, stderr } = command.io;
  // With --json the log alone speaks: it holds the same events.
  const say: Say = options.json ? () => {} : (text) => stderr.write(`${escapeLines(filledCommands(text, commands))}\n`);
  // A terminal that is gone, a disk that is full: nobody is left to be told, and leasing goes on.
  const ignore = () => {};
  stderr.on("error", ignore);
  command.onEnd(() => stderr.off("error", ignore));
  const { host, port, namespace } = options;
  mustKeepStrangersOut(options);
  const tlsPaths = tlsPathsOf(options);
  const limits = limitsOf(options);
  const address = parseStoreUrl(options.store);
  const create = options.create ?? stderr.isTTY ?? false;
  if (options.create && address.kind.startsWith("redis")) {
    throw new TypeError(
      `--create makes the file of an embedded store. For Redis: \`${commandLine("init", namespace)}\``,
    );
  }
  const memory = memoryOf(address, options.witnessFolder);
  const destination = stdout.fd === undefined ? undefined : new LogDestination({ fd: stdout.fd, say });
  command.onEnd(() => destination?.flush());
  const { logLevel = "info", json = false } = options;
  const isText = stdout.isTTY && options.logLevel === undefined && !json;
  const hooks = { streamWrite: (line: string) => escapeJson(filledLine(line, commands)) };
  const log = isText
    ? terminalLog(say)
    : pino({ level: logLevel, base: { coordinator: options.name }, hooks }, destination?.stream ?? stdout);
  const suppressor = new EventSuppressor(CALLER_EVENTS, ({ level, event, fields }) => log[level](fields, event));
  const events = new EventHub(SILENT_LOG);
  events.subscribe(suppressor.take);
  destination?.onDropped((dropped) => events.error(dropped, "log_lines_lost"));
  const recent = new RecentEvents();
  events.subscribe(recent.take);
  const { greeting, ...admission } = await admissionOf(options, events, say);
  const tls = tlsPaths && readTls(tlsPaths);
  // After every check of the options: a misuse is reported as such, whatever else uses the port.
  await mustBeFree(host, port);
  say(greeting);
  const hungUp = untilHungUp({ rereads: options.tokensFile !== undefined || tls !== undefined, log: events, say });
  const opened = await openStore(address, {
    create,
    mustNotBeLost: () => {
      memory.mustNotBeLost();
      if (create) memory.makeFolder();
    },
    allowNetworkFileSystem: options.allowNetworkFileSystem ?? false,
  });
  try {
    const coordinator = new Coordinator({
      store: opened.store,
      name: options.name,
      log: events,
      checkpointFileOf: memory.checkpointFileOf,
      checkpointedNamespaces: memory.namespaces(),
      overrides: options.accept,
      startLoops: (name) => limits.startLoops(name),
    });
    const namespaces = await welcome(coordinator, opened, address, namespace, say);
    // Asked for by name, and missing: said now, not to each importer later.
    if (mustServeNamespace && !namespaces.includes(namespace)) await coordinator.status(namespace);
    const server = await createServer({
      coordinator,
      release: RELEASE,
      events,
      recentEvents: recent,
      ...admission,
      listenWithoutTokens: options.listenWithoutTokens ?? false,
      listenWithoutTls: options.listenWithoutTls ?? false,
      limits,
      leasesAtOnce: options.leasesAtOnce,
      publicInspect: options.publicInspect ?? false,
      connectionCountMax: options.connections,
      // Where nobody is asked for a token, and strangers may come, nobody is told.
      startedWith: admission.isForOperators
        ? { store: describeStore(address), startedAtMs: Date.now(), settings, commands }
        : undefined,
      tls: tls?.material,
    });
    const url = await server.listen({ host, port });
    for (const text of exposureOf(options, tls?.material)) say(text);
    say(`listening on ${url}, stop with Ctrl-C`);
    say(`the console: ${new URL(OPERATOR_ROUTES.console, url)}`);
    events.info({ url, store: describeStore(address), release: RELEASE }, "start");
    const unfollowTls = tls && followTlsFiles(tls, (material) => server.useTls(material), events);
    coordinator.startHeartbeat();
    const { ledgerDir } = options;
    const files = ledgerDir === undefined ? undefined : new LedgerFiles(ledgerDir);
    const trimmer = new LedgerTrimmer({ store: opened.store, files, log: events });
    trimmer.start();
    const reason = await Promise.race([untilStopped(), hungUp]);
    say(`${reason}: finishing what is under way`);
    await server.stop();
    unfollowTls?.();
    await trimmer.stop();
    recent.close();
    await coordinator.stopHeartbeat();
    events.info({ reason }, "stop");
  } finally {
    suppressor.close();
    await opened.store.close();
    await destination?.close();
  }
}

/**
 * Names the store; makes its first namespace when the store is new, and warns of that. Returns what is served, now or once it is
 * repaired. @throws CoordinatorError when no namespace leases.
 */
async function welcome(
  coordinator: Coordinator,
  { isNew, store }: OpenStore,
  address: StoreAddress,
  namespace: string,
  say: Say,
): Promise<readonly string[]> {
  say(`Callnumber ${RELEASE}, store ${describeStore(address)}`);
  if (!isNew) {
    const { namespaces, unavailable } = await coordinator.assertReady();
    say(`namespaces: ${namespaces.join(", ")}`);
    const wayBack = store.isExclusive
      ? "Stop this coordinator, repair the namespace, start it again"
      : "It is leased from as soon as it is repaired, without a restart";
    for (const { namespace: name, error } of unavailable)
      say(`namespace ${name} does not lease (${error.code}): ${error.message}. ${wayBack}`);
    return [...namespaces, ...unavailable.map(({ namespace: name }) => name)];
  }
  say(`THIS IS A NEW STORE. ${announcement(await coordinator.initNamespace(namespace), describeStore(address))}`);
  return [namespace];
}

/** Before a store is made or opened: nothing should begin that can't go on. */
async function mustBeFree(host: string, port: number): Promise<void> {
  const probe = createProbe();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", (error: NodeJS.ErrnoException) =>
      reject(error.code === "EADDRINUSE" ? portTaken(host, port, error) : cannotListen(host, port, error)),
    );
    probe.listen(port, host, () => probe.close(() => resolve()));
  });
}

function portTaken(host: string, port: number, cause: Error): Error {
  const message = `port ${port} on ${host} is taken, perhaps by another coordinator. Say --port with another one (0: any free one)`;
  return Object.assign(new Error(message, { cause }), { code: "port_taken" });
}

/** What a start fails by, beside a port that is taken. */
const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: "this machine has no such address; say --host with one of its own, or 0.0.0.0 for all of them",
  ENOTFOUND: "nobody knows that name; say --host with an address of this machine",
  EACCES: "this user may not listen there; say --port with one above 1023",
};

function cannotListen(host: string, port: number, cause: NodeJS.ErrnoException): Error {
  const { code = "" } = cause;
  if (!Object.hasOwn(LISTEN_FAULTS, code)) return cause;
  return new TypeError(`can't listen on ${host}, port ${port}: ${LISTEN_FAULTS[code]}`, { cause });
}
