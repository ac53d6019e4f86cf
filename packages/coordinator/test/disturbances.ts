/** What happens to a store between the moment that a step is decided on and the moment that it is written: by others, by hand, by loss. */

import { LEDGER_ID_MAX, ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import fc from "fast-check";
import type { ObservedServer } from "../src/guard/checks.js";
import { checksumOf } from "../src/guard/record.js";
import type { KeptState } from "./kept-state.js";
import { BAD_WORDS, BIG_WORDS, FIELDS } from "./random-states.js";

type Fields = Readonly<Record<string, string>>;

/** Of the number that is there: the same one, or what is one to some program. */
const OTHER_WRITINGS = ["0*", "000000000000000*", " *", "*.0", "+*", "*e0", "*x", "0x*"];

export interface Disturbance {
  readonly name: string;
  /** Whether others have leased or given a heartbeat, and nothing else: a lease must go on above them. */
  readonly isHarmless: boolean;
  change(state: KeptState): KeptState;
  /** How the server is another one than it was. */
  server(server: ObservedServer): ObservedServer;
  /** How far the store's clock has leapt since, in parts of eps and ms. */
  readonly leap: { readonly partOfEps: number; readonly ms: number };
}

const CALM: Omit<Disturbance, "name"> = {
  isHarmless: false,
  change: (state) => state,
  server: (server) => server,
  leap: { partOfEps: 0, ms: 0 },
};

function disturbance(own: Partial<Disturbance> & Pick<Disturbance, "name">): Disturbance {
  return { ...CALM, ...own };
}

const sum = (text: string | undefined, by: number) => String(Math.max(Number(text) + by, 0));

/** As a program would that knows the checksum. */
function edited(own: (fields: Fields) => Fields, isChecksumRight = true): Disturbance["change"] {
  return (state) => {
    if (typeof state.record !== "object") return state;
    const fields = { ...state.record.fields, ...own(state.record.fields) };
    return {
      ...state,
      record: { ...state.record, fields: isChecksumRight ? { ...fields, k: checksumOf(fields) } : fields },
    };
  };
}

/** Another coordinator's lease. */
function leased(runCount: number, laterMs: number): Disturbance["change"] {
  const raised = edited((fields) => ({ c: sum(fields["c"], runCount), t: sum(fields["t"], laterMs) }));
  return (before) => {
    const state = raised(before);
    if (typeof state.record !== "object" || typeof state.ledger === "string" || state.holders !== "hash") return state;
    const { ver = "", c = "" } = state.record.fields;
    return { ...state, ledger: withEntry(state.ledger, ledgerIdOf(Number(ver), Number(c))) };
  };
}

/** Unchanged by an id that no stream takes, or that is no whole number to a store: not above the others, or of a counter that was edited. */
function withEntry(ledger: KeptState["ledger"], id: number): KeptState["ledger"] {
  const entries = typeof ledger === "string" ? [] : ledger;
  return id > (entries.at(-1) ?? 0) && id <= LEDGER_ID_MAX + 1 ? [...entries, id] : ledger;
}

const changes: Readonly<Record<string, Disturbance["change"]>> = {
  "a claim": edited((fields) => ({ g: sum(fields["g"], 1), p: "1" })),
  "a confirmation": edited((fields) => ({ c: sum(fields["c"], 300), p: "0" })),
  "a seal as one of two copies": edited(() => ({ p: "2", ph: "forked" })),
  "a seal as moved": edited(() => ({ p: "2", ph: "moved" })),
  "a claim in another epoch": edited((fields) => ({ ep: "a:b:c:d", g: sum(fields["g"], 1), p: "1" })),
  "another epoch": edited(() => ({ ep: "a:b:c:d" })),
  "an advance": edited((fields) => ({ ver: sum(fields["ver"], 1), c: "0", g: sum(fields["g"], 1) })),
  "another store": edited((fields) => ({ sid: fields["sid"]?.replace("0189c0de-0000", "0189c0de-1111") ?? "" })),
  "another namespace": edited(() => ({ ns: "other" })),
  "one node more": edited((fields) => ({ n: sum(fields["n"], 1) })),
  "another proof key": edited(() => ({ rk: "77".repeat(32) })),
  "a rollback": edited((fields) => ({ c: sum(fields["c"], -2), t: sum(fields["t"], -1_000) })),
  "a rollback behind the first run": edited(() => ({ c: "0" })),
  "an edited mark": edited((fields) => ({ c: sum(fields["c"], 5) }), false),
  "an edited time": edited((fields) => ({ t: sum(fields["t"], 5) }), false),
  "a write long ago": edited((fields) => ({ t: sum(fields["t"], -31 * 24 * 3_600_000) })),
  "a write before the gap": edited((fields) => ({ t: sum(fields["t"], -300_001) })),
  "a write in the future": edited((fields) => ({ t: sum(fields["t"], 3_600_000) })),
  "the last mark": edited(() => ({ c: String(RUN_MAX) })),
  "no record": (state) => ({ ...state, record: "none" }),
  "a string for the record": (state) => ({ ...state, record: "string" }),
  "a time to live": (state) => ({
    ...state,
    record: typeof state.record === "object" ? { ...state.record, expires: true } : state.record,
  }),
  "a newer entry": (state) => ({ ...state, ledger: newerIn(state, 5) }),
  "an entry of the last version": (state) => ({ ...state, ledger: newerIn(state, 7 * 2 ** 30) }),
  "no ledger": (state) => ({ ...state, ledger: "none" }),
  "a string for the ledger": (state) => ({ ...state, ledger: "string" }),
  "a list for the holders": (state) => ({ ...state, holders: "list" }),
};

function newerIn({ record, ledger }: KeptState, by: number): KeptState["ledger"] {
  const { ver = "0", c = "0" } = typeof record === "object" ? record.fields : {};
  const entries = typeof ledger === "string" ? [] : ledger;
  const id = Math.max(ledgerIdOf(Number(ver), Number(c)), entries.at(-1) ?? 0) + by;
  return withEntry(ledger, Math.min(id, LEDGER_ID_MAX + 1));
}

const servers: Readonly<Record<string, Disturbance["server"]>> = {
  "a replica": (server) => ({ ...server, role: "slave" }),
  "another process": (server) => ({ ...server, epoch: "a:b:c:d" }),
  "an unknown epoch": (server) => ({ ...server, epoch: undefined }),
  "one replica more": (server) => ({ ...server, connectedReplicas: server.connectedReplicas + 1 }),
  "many replicas": (server) => ({ ...server, connectedReplicas: 99 }),
};

const named = (own: Readonly<Record<string, Partial<Disturbance>>>) =>
  fc.constantFrom(...Object.entries(own).map(([name, one]): Disturbance => disturbance({ name, ...one })));
const mapped = <T>(own: Readonly<Record<string, T>>, as: (value: T) => Partial<Disturbance>) =>
  named(Object.fromEntries(Object.entries(own).map(([name, value]) => [name, as(value)])));

const leasesOfOthers = fc
  .record({ runCount: fc.constantFrom(0, 0, 1, 64, 5_000), laterMs: fc.constantFrom(0, 1, 50, 1_900) })
  .map(({ runCount, laterMs }): Disturbance => {
    const change = leased(runCount, laterMs);
    return disturbance({ name: `${runCount} runs of others, ${laterMs} ms later`, isHarmless: true, change });
  });

/** The mark or the time in another writing, and any field as no step of ours would write it; with and without the right checksum. */
const edits = fc
  .record({
    edit: fc.oneof(
      fc.record({ field: fc.constantFrom("c", "t"), text: fc.constantFrom(...OTHER_WRITINGS) }),
      fc.record({ field: fc.constantFrom(...FIELDS), text: fc.constantFrom(...BAD_WORDS, ...BIG_WORDS) }),
    ),
    isChecksumRight: fc.boolean(),
  })
  .map(({ edit: { field, text }, isChecksumRight }): Disturbance => {
    const own = (fields: Fields) => ({ [field]: text.replace("*", fields[field] ?? "") });
    const change = edited(own, isChecksumRight && field !== "k");
    return disturbance({ name: `${field} is ${text}, checksum ${isChecksumRight ? "right" : "as it was"}`, change });
  });

const leaps = fc
  .record({ partOfEps: fc.constantFrom(-1, -0.5, 0, 0.5, 1, 2), ms: fc.integer({ min: -4, max: 4 }) })
  .map((leap): Disturbance => disturbance({ name: `a leap of ${leap.partOfEps} eps and ${leap.ms} ms`, leap }));

export const disturbances: fc.Arbitrary<Disturbance> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Disturbance>({ ...CALM, name: "nothing" }) },
  { weight: 3, arbitrary: leasesOfOthers },
  { weight: 5, arbitrary: mapped(changes, (change) => ({ change })) },
  { weight: 2, arbitrary: mapped(servers, (server) => ({ server })) },
  { weight: 4, arbitrary: edits },
  { weight: 2, arbitrary: leaps },
);
