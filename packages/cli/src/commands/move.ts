/** `move`: takes namespaces to another store. Prints what it finds and would do. With --apply it does it, or continues. */
import {
  commandUrlOf,
  isDoneSeal,
  movedToIn,
  ofTarget,
  textOfMove,
  urlOfPlace,
} from "@callnumber/coordinator/internal";
import {
  CoordinatorError,
  checkpointsOf,
  describeStore,
  type Finding,
  type Moved,
  type MovePlan,
  moveNamespace,
  type NamespaceRecord,
  openStore,
  placeOf,
  planMove,
  type Store,
  type StoreAddress,
  unaccepted,
} from "@callnumber/coordinator/operator";
import { runName } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { checkedOption, namespaceOption, STORE_GROUP, switchOption } from "../options.js";
import { formatCount, formatRecord, print, printJson } from "../output.js";
import {
  addActingOptions,
  checkpointDirOption,
  confirmClockOption,
  ignoreFindingsOption,
  nodesOption,
  persistentAddress,
  type StoreNamespaceOptions,
  urlFileOption,
} from "../store-options.js";

interface Options extends StoreNamespaceOptions {
  readonly to?: string;
  readonly nodes: number;
  readonly ignoreFindings: readonly string[];
  readonly confirmClock?: boolean;
  readonly confirmLoss?: string;
  readonly apply?: boolean;
}

const ALL = "all";

export function makeCommand(): Command {
  const command = new Command("move")
    .description(
      "Moves namespaces from one store to another, such as from the embedded store to Redis, with the ledger. The new store has a " +
        "store id of its own and a later one of the eight versions of call numbers. The old one is sealed permanently, and nothing is leased " +
        "until a coordinator runs on the new one. Shows what it found and will do, and changes nothing without --apply. After an " +
        "interruption, run it again: it continues.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber move --to redis://127.0.0.1:6379\n" +
        "  $ callnumber move --store redis://old:6379 --to redis://new:6379 \\\n      --namespace all --nodes 3 --apply",
    )
    .action(move);
  return addActingOptions(command, [
    checkedOption("--to <url>", "the new store; it must not hold these namespaces yet"),
    namespaceOption(STORE_GROUP, `namespace of the runs, or ${ALL}`),
    nodesOption("data nodes of the new store: the master and its replicas").default(1),
    ignoreFindingsOption(),
    checkpointDirOption(),
    confirmClockOption(),
    checkedOption("--confirm-loss <id>", "id of a new store that runs nowhere: make it again, or one at another place"),
    switchOption("apply", "move the namespaces"),
    urlFileOption("to"),
  ]);
}

interface FromTo<T> {
  readonly from: T;
  readonly to: T;
}

/** Both stores for people, without passwords. */
type Route = FromTo<string>;

async function move(options: Options): Promise<void> {
  const { json, nodes, to } = options;
  if (to === undefined) throw new TypeError("move has no new store. Pass --to URL or --to-file PATH");
  const [source, target] = [options.store, to].map((url) => persistentAddress(url, "nothing is moved from or to it"));
  const addresses = { from: source as StoreAddress, to: target as StoreAddress };
  const route: Route = { from: describeStore(addresses.from), to: describeStore(addresses.to) };
  if (placeOf(addresses.from).url === placeOf(addresses.to).url) {
    throw new TypeError(`--store and --to are the same place: ${route.to}`);
  }
  const { plans, findings } = await withStores(addresses, options, { create: false }, (stores) =>
    planned(options, stores),
  );
  if (!options.apply) {
    if (json) printJson({ ...route, findings, namespaces: plans.map(planAsJson) });
    else print(plans.map((plan) => formatPlan(plan, route, nodes)).join("\n\n"));
    assertNone(findings);
    if (json) return;
    return print(`Nothing was changed${plans.some(isLeft) ? ". To do it, run it again with --apply" : ""}`);
  }
  assertNone(findings);
  const moved: Moved[] = [];
  try {
    await withStores(addresses, options, { create: true }, async (stores) => {
      for (const { namespace } of plans) {
        const one = await withMove(options, stores, namespace, moveNamespace);
        if (!json) print(formatMoved(one));
        moved.push(one);
      }
    });
  } finally {
    // Those that are done are shown also when a later one fails.
    if (json && moved.length > 0) printJson({ ...route, moved: moved.map(movedAsJson) });
  }
  if (!json && moved.some(({ record }) => movedToOf(record) === undefined))
    print(nextSteps(addresses, options.confirmLoss));
}

interface Stores extends FromTo<StoreAddress> {
  readonly source: Store;
  readonly target: Store;
  /** In its place is an empty store in memory. */
  readonly isTargetMissing: boolean;
}

type StoppingFinding = Finding & { readonly code: NonNullable<Finding["code"]> };

/** Changes nothing. `findings`: what prevents leasing from the new store. */
async function planned(options: Options, stores: Stores) {
  const { namespace, ignoreFindings } = options;
  const plans: MovePlan[] = [];
  for (const name of namespace === ALL ? await allOf(options, stores) : [namespace]) {
    plans.push(await withMove(options, stores, name, planMove));
  }
  if (plans.length === 0) {
    throw new CoordinatorError("namespace_not_found", `the store ${describeStore(stores.from)} holds no namespace`);
  }
  const findings = unaccepted(await stores.target.preflight({ asOperator: true }), ignoreFindings).filter(
    (finding): finding is StoppingFinding => finding.code !== undefined,
  );
  return { plans, findings };
}

/** None may be left behind unseen: one that is lost is recovered first, or the others are moved by name. */
async function allOf({ checkpointDir }: Options, { source, from }: Stores): Promise<readonly string[]> {
  const listed = await source.listNamespaces();
  checkpointsOf(from, checkpointDir).assertListed(listed);
  return listed;
}

async function withMove<T>(
  { nodes, ignoreFindings, checkpointDir, confirmClock = false, confirmLoss }: Options,
  { source, target, isTargetMissing, from, to }: Stores,
  namespace: string,
  act: (move: Parameters<typeof moveNamespace>[0]) => Promise<T>,
): Promise<T> {
  const checkpointFile = checkpointsOf(from, checkpointDir).checkpointFileOf(namespace);
  const targetCheckpointFile = checkpointsOf(to, checkpointDir).checkpointFileOf(namespace);
  try {
    const newPlace = {
      store: target,
      isMissing: isTargetMissing,
      ...namedPlace(to),
      checkpointFile: targetCheckpointFile,
    };
    const request = { store: source, namespace, checkpointFile, target: newPlace, nodeCount: nodes };
    return await act({
      ...request,
      overrides: ignoreFindings,
      isClockChecked: confirmClock,
      lostStoreId: confirmLoss,
    });
  } finally {
    checkpointFile.close();
    targetCheckpointFile.close();
  }
}

async function withStores<T>(
  { from, to }: FromTo<StoreAddress>,
  { checkpointDir }: Options,
  { create }: { readonly create: boolean },
  act: (stores: Stores) => Promise<T>,
): Promise<T> {
  const mustNotBeLost = () => checkpointsOf(from, checkpointDir).mustNotBeLost({ isMove: true });
  // A copy is moved only where the move has begun: `planMove` sees to it.
  const { store: source } = await openStore(from, { create: false, acceptCopy: true, mustNotBeLost });
  let target: Store | undefined;
  try {
    const opened = await openTarget(to, create);
    target = opened.store;
    return await act({ from, to, source, target, isTargetMissing: opened.isMissing });
  } finally {
    await target?.close();
    await source.close();
  }
}

/** A store that does not exist yet is an empty one. */
async function openTarget(address: StoreAddress, create: boolean) {
  try {
    const opening = openStore(address, { create });
    return { store: (await ofTarget(namedPlace(address), opening)).store, isMissing: false };
  } catch (error) {
    if (!(error instanceof CoordinatorError) || error.code !== "store_not_found") throw error;
    return { store: (await openStore({ kind: "memory" }, { create })).store, isMissing: true };
  }
}

function namedPlace(address: StoreAddress) {
  return { place: placeOf(address).url, url: commandUrlOf(address) };
}

/** Where the seal of a record says that it went. */
function movedToOf({ seal }: NamespaceRecord) {
  return movedToIn(textOfMove(seal));
}

function isLeft({ stage, source, storeId }: MovePlan): boolean {
  return stage !== "done" || movedToOf(source)?.storeId !== storeId || !isDoneSeal(source.seal);
}

/** How far the move is, and what the old store has of it. */
function formatStage(plan: MovePlan): string {
  const { stage, source, storeId } = plan;
  if (stage === "new") return "not begun";
  if (!isLeft(plan)) return "done already: nothing is left to do";
  const sealedFor = movedToOf(source)?.storeId;
  const isForIt = sealedFor === storeId;
  if (stage === "done" && isForIt) return "done already; --apply only notes that in the seal of the old store";
  const seal = isForIt ? "is sealed for it" : sealedFor === undefined ? "has no seal" : "is sealed for another place";
  return stage === "done"
    ? `done already, but the old store ${seal}; --apply seals it for this one`
    : `begun: the old store ${seal}, and the new one is missing; --apply continues from there`;
}

function formatPlan(plan: MovePlan, { from, to }: Route, nodeCount: number): string {
  const { namespace, source, storeId, firstVersion, target, ledger } = plan;
  const { version, highWaterMark } = source;
  const found = [
    `namespace ${namespace}, store id ${source.storeId}`,
    "found",
    `  the old store      ${from}`,
    `                     version ${version}, ${formatRecord(source)}`,
    `  the new store      ${to}`,
    `                     ${target === undefined ? "no such namespace" : `store id ${storeId}${formatMovedOn(target)}`}`,
    `  the move           ${formatStage(plan)}`,
  ];
  if (ledger === undefined) return found.join("\n");
  const { leaseCount, copiedCount } = ledger;
  const left = VERSION_MAX - firstVersion;
  const moves = left === 0 ? "no further move is" : left === 1 ? "1 more move is" : `${left} more moves are`;
  return [
    ...found,
    "moving",
    "  1 seals the old store permanently: it leases no more",
    `  2 copies ${formatCount(leaseCount - copiedCount)} of ${formatCount(leaseCount)} leases, and compares all`,
    `  3 makes the new store, with a store id of its own and version ${firstVersion} of the call numbers, for ${nodeCount} data ${nodeCount === 1 ? "node" : "nodes"}`,
    "and costs",
    `  a version          ${formatCount(RUN_MAX - highWaterMark)} runs of version ${version} are never leased; ${moves} possible`,
    ...(firstVersion > version + 1
      ? [`                     the old store may have reached version ${firstVersion - 1}: the new one begins above it`]
      : []),
    "  a store id         importers that pin one (expectedStoreId) stop until they are given the new one",
    "  time               nothing is leased until a coordinator has claimed the new store; importers continue with the runs they hold",
  ].join("\n");
}

function formatMoved({ namespace, storeId, leaseCount, record }: Moved): string {
  const { version, highWaterMark } = record;
  const done =
    leaseCount === undefined
      ? `Namespace ${namespace} was moved before.`
      : `Namespace ${namespace} is moved: ${formatCount(leaseCount)} ${leaseCount === 1 ? "lease is" : "leases are"} there, the high-water mark is run ${runName(version, highWaterMark)}.`;
  return `${done}\n  new store id       ${storeId}${formatMovedOn(record)}`;
}

/** The new store may have been moved, too, since an earlier try. */
function formatMovedOn(record: NamespaceRecord): string {
  const movedOn = movedToOf(record);
  if (movedOn === undefined) return "";
  const { storeId, place } = movedOn;
  return `\n  moved on           to ${urlOfPlace(place)}, as store id ${storeId}: start "callnumber serve" there`;
}

/** What the operator must do then: coordinators have another user than the one of this command. */
function nextSteps(addresses: FromTo<StoreAddress>, lostStoreId: string | undefined): string {
  const [from, to] = [addresses.from, addresses.to].map((address) =>
    describeStore(address).replace(/\/\/[^/]*@/, "//"),
  );
  const granting =
    addresses.to.kind === "postgres" ? ", once it has the rights of deploy/postgres/coordinator.sql" : "";
  return [
    "Now:",
    `  1 stop every "callnumber serve" on ${from}: it rejects every lease (namespace_moved)`,
    ...(lostStoreId === undefined ? [] : [`    and every one that ran on the store ${lostStoreId}, which is given up`]),
    `  2 start "callnumber serve" on ${to}${granting}: it claims the store, and leases some seconds later`,
    "  3 restart importers with the new store id as expectedStoreId, and the coordinator's URL if it is another one",
    "  4 note the new store id where the old one was noted",
  ].join("\n");
}

/** @throws CoordinatorError for the first finding. */
function assertNone(findings: readonly StoppingFinding[]): void {
  for (const finding of findings) throw new CoordinatorError(finding.code, formatFinding(finding));
}

function formatFinding({ what, remedy, override }: Finding): string {
  const accept = override === undefined ? "" : ` (or accept it: --ignore-findings ${override})`;
  return `the new store would lease nothing: ${what}. Change: ${remedy}${accept}`;
}

/** The key of the lease proofs is secret. */
function planAsJson({ namespace, stage, source, storeId, firstVersion, target, ledger }: MovePlan): object {
  const { version, highWaterMark, generation } = source;
  return {
    namespace,
    stage,
    storeId: source.storeId,
    version,
    highWaterMark,
    generation,
    leaseCount: ledger?.leaseCount ?? null,
    copiedCount: ledger?.copiedCount ?? null,
    newStoreId: stage === "new" ? null : storeId,
    newVersion: firstVersion,
    targetPhase: target?.phase ?? null,
  };
}

function movedAsJson({ namespace, storeId, leaseCount, record }: Moved): object {
  const { version, highWaterMark, generation } = record;
  const wasDone = leaseCount === undefined;
  return { namespace, storeId, version, highWaterMark, generation, leaseCount: leaseCount ?? null, wasDone };
}
