/** What happens to the keys inside a running server: emptied, put back from earlier, edited by hand. No epoch changes with these. */
import { type ObservedFields, RUN_MAX } from "../product.js";
import { NOTHING, type Server } from "../server.js";
import type { World } from "../world.js";
import type { Choices, Kind } from "./kind.js";
import { wordsOf } from "./server-faults.js";

export const RECORD_FAULTS = {
  /** FLUSHALL, or DEL of the record alone, or of its ledger alone. */
  flush: {
    group: "flushes",
    weight: 1,
    play: (world, a, b) => {
      const server = masterOf(world, a);
      if (server?.contents.record === undefined) return false;
      const [words, contents] = b.one([
        ["FLUSHALL", NOTHING],
        ["DEL of the record", { ...server.contents, record: undefined }],
        ["DEL of the ledger", { ...server.contents, hasLedger: false, ledgerMark: 0 }],
      ] as const);
      world.tell(() => `${words} at server ${server.index + 1}`);
      put(world, server, contents);
      return true;
    },
  },
  /** Keys copied back, DEBUG RELOAD of an older dump, SWAPDB: inside the running server, young or old. */
  putBack: {
    group: "rollbacks",
    weight: 4,
    play: (world, a) => {
      const server = masterOf(world, a);
      if (server === undefined) return false;
      const { past } = server;
      const allowed = past.filter(
        ({ contents }) => contents.record !== undefined && world.limits.mayPutBack(server, contents),
      );
      const saved = a.one([allowed.slice(-8), allowed][a.of(2)] as typeof allowed);
      if (saved === undefined) return false;
      world.tell(
        () => `the keys are put back into the running server ${server.index + 1} as they were: ${wordsOf(saved)}`,
      );
      world.limits.notePutBack(server);
      put(world, server, saved.contents);
      return true;
    },
  },
  /** One field is written by hand, or a time to live set. */
  edit: {
    group: "edits",
    weight: 2,
    play: (world, a, b) => {
      const server = masterOf(world, a);
      const record = server?.contents.record;
      if (server === undefined || record === undefined) return false;
      if (b.isRare(8)) {
        world.tell(() => `EXPIRE on the record at server ${server.index + 1}`);
        put(world, server, { ...server.contents, expires: true });
        return true;
      }
      const [field, value] = edited(world, server, record, b);
      if (record[field] === value) return false;
      // Who winds the counter back may cut the ledger, too.
      const ledger = b.isRare(3) ? { hasLedger: false, ledgerMark: 0 } : {};
      world.tell(
        () =>
          `${field} = ${value} is written by hand at server ${server.index + 1}${"hasLedger" in ledger ? ", the ledger cut" : ""}`,
      );
      put(world, server, { ...server.contents, ...ledger, record: { ...record, [field]: value } });
      return true;
    },
  },
} satisfies Record<string, Kind>;

/** What somebody may write who wants it to go on, or mistypes. */
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
