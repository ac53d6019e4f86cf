/** What this machine has for minting: its clock, true randomness, its process id and MAC addresses; and what somebody must say. */
import { randomBytes, randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import { pid } from "node:process";
import { capacityOf, type Field, type Memory, type MintContext, type NodeSource, type Scheme } from "../index.js";
import type { StateFile } from "./state-file.js";

/** What was said on the command line. */
export interface NodeOptions {
  readonly node?: number;
  readonly server?: number;
  readonly mac?: readonly string[];
}

/** `randomInt` draws below this. */
const RANDOM_INT_BOUND = 2 ** 48 - 1;
/** Of whole numbers that a double holds one by one. */
const EXACT_COUNT = 2 ** 53;
const NO_MAC = "00:00:00:00:00:00";

/**
 * Nothing is guessed: what tells this node from others must be said where the machine does not know it.
 * @throws TypeError where it is not said, RangeError where it does not fit.
 */
export function machineContext(scheme: Scheme, options: NodeOptions, state: StateFile | undefined): MintContext {
  for (const option of ["node", "server", "mac"] as const) mustHavePlaceFor(option, scheme, options);
  for (const from of ["given", "server", "pid", "mac hash"] as const) mustKnow(scheme, from, options);
  const memory = state?.memory("memory") ?? forgottenMemory();
  const counted = state?.memory("counter");
  return {
    clock: { nowMs: Date.now },
    random: { below },
    node: {
      given: options.node ?? 0,
      server: options.server ?? 0,
      pid,
      macs: hasNode(scheme, "mac hash") ? macsFor(options) : [],
    },
    memory,
    disk: state?.memory("disk") ?? nowhere("a kept sequence"),
    counter: {
      next: () => {
        const next = ((counted ?? nowhere("a counter")).get(scheme.name) ?? 0n) + 1n;
        counted?.set(scheme.name, next);
        return next;
      },
    },
  };
}

/** Whether minting needs what outlives the process. */
export function needsState({ fields }: Scheme): boolean {
  return fields.some(
    ({ source }) => source.kind === "counter" || (source.kind === "sequence" && source.within === "kept"),
  );
}

function mustKnow(scheme: Scheme, from: NodeSource, options: NodeOptions): void {
  const fields = scheme.fields.filter(({ source }) => source.kind === "node" && source.from === from);
  if (fields.length === 0) return;
  const value = valueOf(from, options);
  const greatest = fields.reduce((product, field) => product * capacityOf(field), 1n) - 1n;
  if (value === undefined && from === "mac hash" && macsFor(options).length > 0) return;
  if (value === undefined)
    throw new TypeError(`${scheme.name} ${MISSING[from]} N, from 0 to ${greatest}; no other may have it`);
  if (BigInt(value) <= greatest) return;
  throw new RangeError(
    from === "pid"
      ? `${scheme.name} has room for process ids up to ${greatest}; this process is ${value}. Try again, or lower kernel.pid_max`
      : `--${OPTIONS[from]} must be from 0 to ${greatest} for ${scheme.name}, not ${value}`,
  );
}

/** How each is said. A process knows its id. */
const OPTIONS: Readonly<Record<NodeSource, "node" | "server" | undefined>> = {
  given: "node",
  server: "server",
  pid: undefined,
  "mac hash": "node",
};

const MISSING: Readonly<Record<NodeSource, string>> = {
  given: "must be told which node this is: --node",
  server: "must be told which server this is: --server",
  pid: "needs the process id",
  "mac hash":
    "tells nodes apart by their MAC addresses, and this machine shows none: --mac de:ad:be:ef:00:01, or --node",
};

function valueOf(from: NodeSource, options: NodeOptions): number | undefined {
  const option = OPTIONS[from];
  return option === undefined ? pid : options[option];
}

/** Whoever says which node this is expects that it stands in the number. */
function mustHavePlaceFor(option: "node" | "server" | "mac", { name, fields }: Scheme, options: NodeOptions): void {
  if (options[option] === undefined) return;
  const isMeant = ({ source }: Field) =>
    source.kind === "node" && (option === "mac" ? source.from === "mac hash" : OPTIONS[source.from] === option);
  if (!fields.some(isMeant)) throw new TypeError(`a number of ${name} has no place for --${option}; leave it out`);
}

function hasNode({ fields }: Scheme, from: NodeSource): boolean {
  return fields.some(({ source }) => source.kind === "node" && source.from === from);
}

/** A number that is given stands above the addresses that the machine has. */
function macsFor({ node, mac }: NodeOptions): readonly string[] {
  if (node !== undefined && mac !== undefined)
    throw new TypeError("--node or --mac, not both: each says which node this is");
  return node === undefined ? (mac ?? macsOfMachine()) : [];
}

/** Of the interfaces that lead out of the machine, in the order in which the system has them, each once. */
function macsOfMachine(): readonly string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const macs = addresses.filter(({ internal, mac }) => !internal && mac !== NO_MAC).map(({ mac }) => mac);
  return [...new Set(macs)];
}

/** Each value with the same chance, from the system's own source. */
function below(bound: number): number {
  if (bound <= RANDOM_INT_BOUND) return randomInt(bound);
  // What is left over above the last whole multiple would make small values likelier.
  const limit = EXACT_COUNT - (EXACT_COUNT % bound);
  for (;;) {
    const bytes = randomBytes(8);
    const drawn = (bytes.readUInt32BE(0) >>> 11) * 2 ** 32 + bytes.readUInt32BE(4);
    if (drawn < limit) return drawn % bound;
  }
}

function forgottenMemory(): Memory {
  const kept = new Map<string, bigint>();
  return { get: (name) => kept.get(name), set: (name, value) => void kept.set(name, value) };
}

/** A memory that must not be asked: `needsState` has said that nobody will. */
function nowhere(what: string): Memory {
  const refuse = (): never => {
    throw new Error(`${what} was asked for without a state file`);
  };
  return { get: refuse, set: refuse };
}
