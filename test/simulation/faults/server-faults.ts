/** What happens to servers, and to the keys inside a running one. */

import { type ObservedFields, RUN_MAX } from "../product.js";
import { EMPTY_DISK, NOTHING, type Saved, type Server } from "../server.js";
import type { World } from "../world.js";
import { type Choices, kind } from "./kind.js";

export const SERVER_FAULTS = {
  stopServer: kind("stops", 2, (world, a) => {
    const server = a.one(world.group.servers);
    if (!world.network.stop(server.index)) return false;
    world.log(() => `server ${server.index + 1} is stopped (SIGSTOP)`);
  }),
  continueServer: kind("stops", 3, (world) => {
    const stopped = world.group.servers.find(({ index }) => world.network.isStopped(index));
    if (stopped === undefined) return false;
    world.log(() => `server ${stopped.index + 1} goes on (SIGCONT)`);
    world.network.goOn(stopped.index);
  }),
  /** kill -9, power loss, an old RDB or AOF, no persistence: it comes back with something that it held once, or nothing. */
  crash: kind("crashes", 4, (world, a, b) => {
    const server = a.one(world.group.servers);
    const saved = a.isRare(8) ? EMPTY_DISK : earlier(server.past, a);
    if (saved === undefined) return false;
    startFrom(world, server, saved, b, "is killed and starts again");
  }),
  /** A replica that has another master now starts again from an RDB, and a configuration, of the time before. */
  comeBack: kind("failover", 2, (world, a) => {
    const server = a.one(world.group.servers.filter(({ follows }) => follows !== undefined));
    const saved = server?.past.findLast(({ follows }) => follows !== undefined && follows !== server.follows);
    if (server === undefined || saved?.follows === undefined) return false;
    restart(world, server, {
      saved,
      master: world.group.at(saved.follows),
      remembersStream: true,
      verb: "comes back",
    });
  }),
  backUp: kind("backups", 2, (world, a) => {
    const server = a.one(world.group.servers);
    world.log(() => `a backup is taken of server ${server.index + 1}: ${wordsOf(server.saved())}`);
    world.backups.push(server.saved());
  }),
  restore: kind("backups", 3, (world, a, b) => {
    const server = a.one(world.group.servers);
    const saved = a.one(world.backups);
    if (saved === undefined) return false;
    startFrom(world, server, saved, b, "is restored from a backup");
  }),
  promote: kind("failover", 3, (world, a) => {
    const server = a.one(world.group.servers);
    if (!server.isUp || server.role === "master") return false;
    world.log(() => `server ${server.index + 1} is promoted, with ${wordsOf(server.saved())}`);
    world.group.promote(server);
  }),
  follow: kind("failover", 3, (world, a, b) => {
    const server = a.one(world.group.servers);
    const others = world.group.servers.filter((other) => other !== server && other.role === "master");
    const master = a.one(others);
    if (master === undefined || server.follows === master.index || !server.isUp) return false;
    follow(world, server, master, b.isRare(3));
  }),
  /** As Sentinel does it, or half of it: a replica is promoted, some others follow it, some coordinators go there. */
  failOver: kind("failover", 3, (world, a, b) => {
    const server = a.one(world.group.servers);
    if (!server.isUp || server.role === "master") return false;
    world.log(() => `server ${server.index + 1} is promoted, with ${wordsOf(server.saved())}`);
    world.group.promote(server);
    for (const other of world.group.servers) {
      if (other !== server && other.isUp && b.of(2) === 0) follow(world, other, server, false);
    }
    for (const host of world.hosts) if (b.of(2) === 0) host.route = server.index;
    world.log(() => `coordinators are pointed at servers ${world.hosts.map(({ route }) => route + 1).join(", ")}`);
  }),
};

/** Who waits at a master that becomes a replica is hung up on; or not, which is worse. */
function follow(world: World, server: Server, master: Server, keepsWaiting: boolean): void {
  world.log(() => `server ${server.index + 1} gets the command to follow server ${master.index + 1}`);
  if (!keepsWaiting) world.calls.hangUp(server);
  world.group.follow(server, master);
}

/** The disk as it is, as it was a little while ago, or ever. */
function earlier(past: readonly Saved[], choices: Choices): Saved | undefined {
  const reach = choices.one([1, 4, 16, past.length]);
  return past[past.length - 1 - choices.of(Math.max(Math.min(reach, past.length), 1))];
}

function startFrom(world: World, server: Server, saved: Saved, choices: Choices, verb: string): void {
  const { group } = world;
  const remembersStream = choices.of(2) === 1;
  // Its configuration is as it was, or as old as the disk, or names any server.
  const others = group.servers.filter((other) => other !== server).map(({ index }) => index);
  const follows = choices.one([server.follows, saved.follows, choices.one([undefined, ...others])]);
  const master = follows === server.index || follows === undefined ? undefined : group.at(follows);
  restart(world, server, { saved, master, remembersStream, verb });
}

interface Restart {
  readonly saved: Saved;
  /** Undefined: as a master. */
  readonly master: Server | undefined;
  readonly remembersStream: boolean;
  readonly verb: string;
}

function restart(world: World, server: Server, { saved, master, remembersStream, verb }: Restart): void {
  const { group } = world;
  world.log(
    () =>
      `server ${server.index + 1} ${verb} with ${wordsOf(saved)}, ${master === undefined ? "as a master" : `as replica of server ${master.index + 1}`}` +
      `${remembersStream ? "; its disk (RDB) knows its place in the stream" : ""}`,
  );
  world.calls.hangUp(server);
  world.network.goOn(server.index);
  group.end(server);
  server.start(saved, master === undefined ? "master" : "slave", remembersStream);
  server.past.push(server.saved());
  group.rejoin(server, master);
}

function wordsOf({ contents }: Saved): string {
  const { record } = contents;
  return record === undefined ? "no record" : `mark ${record["c"]}, generation ${record["g"]}`;
}

export const RECORD_FAULTS = {
  /** FLUSHALL, or DEL of the record alone, or of its ledger alone. */
  flush: kind("flushes", 1, (world, a, b) => {
    const server = masterOf(world, a);
    if (server?.contents.record === undefined) return false;
    const [words, contents] = b.one([
      ["FLUSHALL", NOTHING],
      ["DEL of the record", { ...server.contents, record: undefined }],
      ["DEL of the ledger", { ...server.contents, hasLedger: false, ledgerMark: 0 }],
    ] as const);
    world.log(() => `${words} at server ${server.index + 1}`);
    put(world, server, contents);
  }),
  /** Keys copied back, DEBUG RELOAD of an older dump, SWAPDB: inside the running server, young or old. */
  putBack: kind("rollbacks", 4, (world, a, b) => {
    const server = masterOf(world, a);
    if (server === undefined) return false;
    const { past } = server;
    // RESTORE of the record alone leaves a ledger that has what it lacks.
    const isRecordAlone = b.isRare(3);
    const backTo = ({ contents }: Saved) =>
      isRecordAlone ? { ...server.contents, record: contents.record, expires: contents.expires } : contents;
    const allowed = past.filter(
      (saved) => saved.contents.record !== undefined && world.limits.mayPutBack(server, backTo(saved)),
    );
    const saved = a.one([allowed.slice(-8), allowed][a.of(2)] as typeof allowed);
    if (saved === undefined) return false;
    world.log(
      () =>
        `${isRecordAlone ? "the record is" : "the keys are"} put back into the running server ${server.index + 1} as of ${wordsOf(saved)}`,
    );
    world.limits.notePutBack(server);
    put(world, server, backTo(saved));
  }),
  /** One field is edited, or a time to live set. */
  edit: kind("edits", 2, (world, a, b) => {
    const server = masterOf(world, a);
    const record = server?.contents.record;
    if (server === undefined || record === undefined) return false;
    if (b.isRare(8)) {
      world.log(() => `EXPIRE on the record at server ${server.index + 1}`);
      return put(world, server, { ...server.contents, expires: true });
    }
    const [field, value] = edited(world, server, record, b);
    if (record[field] === value) return false;
    // Who winds the counter back may cut the ledger, too.
    const ledger = b.isRare(3) ? { hasLedger: false, ledgerMark: 0 } : {};
    world.log(
      () =>
        `${field} = ${value} is edited at server ${server.index + 1}${"hasLedger" in ledger ? ", the ledger cut" : ""}`,
    );
    put(world, server, { ...server.contents, ...ledger, record: { ...record, [field]: value } });
  }),
};

/** What an operator may write to make it go on, or by mistake. */
function edited(world: World, server: Server, record: ObservedFields, choices: Choices): readonly [string, string] {
  const mark = Number(record["c"]);
  return choices.one([
    ["ep", server.epoch],
    ["n", "1"],
    ["p", "0"],
    ["c", String(Math.max(mark - choices.of(200), 0))],
    ["c", String(Math.min(mark + choices.of(200), RUN_MAX))],
    ["t", String(world.time.nowMs)],
    ["g", String(Number(record["g"]) + 1)],
    ["rk", "none"],
  ] as const);
}

function masterOf(world: World, choices: Choices): Server | undefined {
  return choices.one(world.group.masters);
}

function put(world: World, server: Server, contents: Server["contents"]): void {
  server.write(contents);
  world.group.spread(server);
}
