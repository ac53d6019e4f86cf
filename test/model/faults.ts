/** Each kind of fault, as all that it may do to a world. What it may not is said in adversary.ts. */
import type { Limits } from "./adversary.js";
import type { Visit } from "./coordinator-steps.js";
import { lease } from "./coordinator-steps.js";
import { changed, coordinatorName } from "./coordinators.js";
import { attached, interrupted, promoted, restarted, written } from "./replication.js";
import { advanceScript, isRefusal, type Rules, recoverScript } from "./scripts.js";
import {
  at,
  FIRST_RECORD,
  FIRST_SNAPSHOT,
  isMaster,
  NOBODY,
  NODE_NAMES,
  replaced,
  type Snapshot,
  type StoreRecord,
  type World,
} from "./world.js";

export type FaultKind = keyof typeof FAULTS;

type Fault = (world: World, rules: Rules, limits: Limits, visit: Visit) => void;

export const FAULTS = {
  promote(world, _rules, _limits, visit) {
    for (const index of replicas(world)) {
      visit(promoted(world, index), () => `${nodeName(index)} is promoted, its old master lives on`);
    }
  },
  follow(world, { design }, _limits, visit) {
    for (const [index, master] of newFollowers(world)) {
      visit(attached(world, design, index, master), () => `${nodeName(index)} is told to follow ${nodeName(master)}`);
    }
  },
  /** The same, and CONFIG RESETSTAT at the master in the same moment, so that its counters read as before. */
  followUnseen(world, { design }, _limits, visit) {
    const blind = { ...design, fullSyncInEpoch: false, partialSyncInEpoch: false };
    for (const [index, master] of newFollowers(world)) {
      const words = () => `${nodeName(index)} is told to follow ${nodeName(master)}, whose statistics are set back`;
      visit(attached(world, blind, index, master), words);
    }
  },
  /** kill -9, power loss, an older RDB or AOF put back, no persistence at all; with the configuration it had, or an older one. */
  restart(world, _rules, _limits, visit) {
    for (const [index, node] of world.nodes.entries()) {
      for (const [from, snapshot] of disksOf(world, index)) {
        for (const follows of new Set([node.follows, ...masters(world).filter((master) => master !== index)])) {
          const configured = { ...world, nodes: replaced(world.nodes, index, { ...node, follows }) };
          visit(restarted(configured, index, snapshot.record, snapshot), () => {
            const role = follows === NOBODY ? "as a master" : `as replica of ${nodeName(follows)}`;
            return `${nodeName(index)} is killed and starts again from ${from} ${role}`;
          });
        }
      }
    }
  },
  /** An old record copied back, or a dump reloaded, inside the running server. */
  rollBack(world, rules, limits, visit) {
    for (const index of masters(world)) {
      for (const record of oldRecords(world)) {
        if (sameRecord(record, at(world.nodes, index).record)) continue;
        const young = world.now - record.t <= rules.numbers.gap + rules.numbers.eps;
        const believed = young && record.p === 0 && record.ep === at(world.nodes, index).epoch;
        if (believed && !isRemembered(world, record, limits)) continue;
        const next = { ...written(world, index, record), rolledBack: believed ? index : world.rolledBack };
        visit(
          next,
          () =>
            `the record of tick ${record.t}, with mark ${record.c}, is put back into the running ${nodeName(index)}`,
        );
      }
    }
  },
  backUp(world, _rules, { faults }, visit) {
    // One is taken, and only while a fault is left to put it back.
    if (world.backup || world.faultCount + 1 >= faults) return;
    for (const [node, { record, history, offset }] of world.nodes.entries()) {
      if (sameRecord(record, FIRST_RECORD)) continue;
      visit({ ...world, backup: { node, record, history, offset } }, () => `a backup is taken of ${nodeName(node)}`);
    }
  },
  /** FLUSHALL or DEL. */
  flush(world, _rules, _limits, visit) {
    for (const index of masters(world)) {
      if (at(world.nodes, index).record)
        visit(written(world, index, null), () => `the record is deleted at ${nodeName(index)}`);
    }
  },
  edit(world, { design }, _limits, visit) {
    for (const index of masters(world)) {
      const { record, epoch } = at(world.nodes, index);
      if (!record?.sound) continue;
      // Where the checksum is looked at, one wrong field is as good as another.
      const edits: Partial<StoreRecord>[] = design.checksum
        ? [{}]
        : [{ c: 0 }, { t: world.now }, { ep: epoch }, { g: record.g + 1 }, { p: 0 }];
      for (const edit of edits) {
        const what = Object.entries(edit).map(([field, value]) => `${field} = ${value}`)[0] ?? "one field";
        visit(
          written(world, index, { ...record, ...edit, sound: false }),
          () => `${what} is written by hand at ${nodeName(index)}`,
        );
      }
    }
  },
  /** The operator's verb, typed at any time on any master. */
  recover(world, rules, _limits, visit) {
    for (const index of masters(world)) {
      const node = at(world.nodes, index);
      const answer = recoverScript(rules, node, world.now + node.clockAhead, { floor: 0, gmin: 0, clock: world.now });
      if (!isRefusal(answer))
        visit(written(world, index, answer), () => `an operator types recover for ${nodeName(index)}`);
    }
  },
  /** The same for the verb that ends a version. */
  advance(world, rules, _limits, visit) {
    if (rules.numbers.space === Number.POSITIVE_INFINITY) return;
    for (const index of masters(world)) {
      const node = at(world.nodes, index);
      const answer = advanceScript(rules, node, world.now + node.clockAhead, { floor: 0, gmin: 0, clock: world.now });
      if (!isRefusal(answer))
        visit(written(world, index, answer), () => `an operator advances the version at ${nodeName(index)}`);
    }
  },
  /** A coordinator that starts anew believes the record it reads. Where it finds that something was remembered, it claims. */
  forget(world, _rules, _limits, visit) {
    if (world.rolledBack !== NOBODY) return;
    for (const [index, coordinator] of world.coordinators.entries()) {
      const { record } = at(world.nodes, coordinator.at);
      const { c, g } = record ?? { c: 0, g: 0 };
      const anew = { ...interrupted(coordinator), floor: c, gmin: g };
      if (coordinator.floor > c || coordinator.gmin > g) {
        visit(changed(world, index, anew), () => `${coordinatorName(index)} is killed, and its witness file is lost`);
      }
      const doubting = { ...anew, phase: "doubt", g } as const;
      if (record)
        visit(
          changed(world, index, doubting),
          () => `${coordinatorName(index)} is killed, and its witness file is damaged`,
        );
    }
  },
  /** A proxy gives the answer for one coordinator to the other as well. */
  doubleAnswer(world, rules, _limits, visit) {
    for (const [index, { phase, from, to, g, at: place }] of world.coordinators.entries()) {
      const other = 1 - index;
      const caller = at(world.coordinators, other);
      if (phase !== "leased" || caller.phase !== "idle" || caller.at !== place) continue;
      const asked = lease(world, rules, other, 1).world;
      if (at(asked.coordinators, other).phase !== "leased") continue;
      const taken = rules.design.nonce ? interrupted(caller) : { ...at(asked.coordinators, other), from, to, g };
      visit(
        changed(asked, other, taken),
        () => `${coordinatorName(other)} asks for a lease and gets the answer for ${coordinatorName(index)}`,
      );
    }
  },
  /** The clock of a node or of a coordinator is set ahead or back. Coordinators' stay within eps: see the limits above. */
  clock(world, { numbers: { eps } }, _limits, visit) {
    if (eps === 0) return;
    for (const clockAhead of [-eps, eps]) {
      for (const [index, node] of world.nodes.entries()) {
        if (node.clockAhead !== 0) continue;
        visit(
          { ...world, nodes: replaced(world.nodes, index, { ...node, clockAhead }) },
          () => `the clock of ${nodeName(index)} is now ${clockAhead} ahead`,
        );
      }
      for (const [index, coordinator] of world.coordinators.entries()) {
        if (coordinator.clockAhead !== 0) continue;
        visit(
          changed(world, index, { ...coordinator, clockAhead }),
          () => `the clock of ${coordinatorName(index)} is now ${clockAhead} ahead`,
        );
      }
    }
  },
} satisfies Record<string, Fault>;

/** What docs/guarantees.md does not promise to survive: R6. */
const OUTSIDE_THE_PROMISES: ReadonlySet<FaultKind> = new Set(["followUnseen"]);

/** What happens unless a search names its kinds. */
export const ALL_FAULTS = (Object.keys(FAULTS) as FaultKind[]).filter((kind) => !OUTSIDE_THE_PROMISES.has(kind));

/** What the node may find at a restart: nothing, the beginning, its last write, or the backup if it was taken of this node. */
function disksOf(world: World, index: number): [string, Snapshot][] {
  const node = index;
  const { record, history, offset } = at(world.nodes, index);
  return [
    ["all it had", { node, record, history, offset }],
    ["an empty disk", { node, record: null, history: world.fresh, offset: 0 }],
    ["its first files", { node, ...FIRST_SNAPSHOT }],
    ...(world.backup?.node === index ? [["its backup", world.backup] satisfies [string, Snapshot]] : []),
  ];
}

const oldRecords = ({ backup }: World): StoreRecord[] => [FIRST_RECORD, ...(backup?.record ? [backup.record] : [])];

function isRemembered({ coordinators }: World, { c, g }: StoreRecord, { everyoneRemembers }: Limits): boolean {
  const remembering = coordinators.filter(({ floor, gmin }) => floor > c || gmin > g);
  return remembering.length >= (everyoneRemembers ? coordinators.length : 1);
}

const sameRecord = (one: StoreRecord | null, other: StoreRecord | null): boolean =>
  one === other ||
  (one !== null &&
    other !== null &&
    (Object.keys(one) as (keyof StoreRecord)[]).every((field) => one[field] === other[field]));

/** A replica, or a master, and another master that it may be told to follow. */
const newFollowers = (world: World): [index: number, master: number][] =>
  masters(world).flatMap((master) =>
    [...world.nodes.entries()].flatMap(([index, { follows }]): [number, number][] =>
      index === master || follows === master ? [] : [[index, master]],
    ),
  );
const masters = (world: World): number[] => indexesWhere(world, true);
const replicas = (world: World): number[] => indexesWhere(world, false);
const indexesWhere = (world: World, wanted: boolean): number[] =>
  [...world.nodes.keys()].filter((index) => isMaster(at(world.nodes, index)) === wanted);
const nodeName = (index: number): string => at(NODE_NAMES, index);
