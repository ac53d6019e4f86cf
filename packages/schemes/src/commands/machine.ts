/** What minting takes from this machine: its clock, random numbers, process id and MAC addresses; and what the command line must state. */
import { randomBytes, randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import { pid } from "node:process";
import { capacityOf, type MintContext, type NodeSource, type Scheme } from "../index.js";
import type { StateFile } from "./state-file.js";

/** What the command line states. */
export interface NodeOptions {
  readonly node?: number;
  readonly server?: number;
}

/** The option that states each source. A process knows its id. */
const OPTIONS: Readonly<Record<NodeSource, keyof NodeOptions | undefined>> = {
  given: "node",
  server: "server",
  pid: undefined,
  "mac hash": "node",
};

/**
 * Nothing is guessed: what tells this node from others must be stated where the machine does not know it. Without a state file the sequences
 * are kept in memory; a scheme for which `needsState` then throws at its first number.
 * @throws TypeError where it is not stated, RangeError where it does not fit.
 */
export function machineContext(scheme: Scheme, options: NodeOptions, state: StateFile | undefined): MintContext {
  const macs = options.node === undefined ? macsOfMachine() : [];
  const sources = new Set(scheme.fields.flatMap(({ source }) => (source.kind === "node" ? [source.from] : [])));
  for (const option of ["node", "server"] as const) {
    if (options[option] === undefined || [...sources].some((from) => OPTIONS[from] === option)) continue;
    throw new TypeError(`a number of ${scheme.name} has no place for --${option}; leave it out`);
  }
  for (const from of sources) {
    if (from !== "mac hash" || macs.length === 0) assertStated(scheme, from, options);
  }
  const memoryOf = (kind: string) => {
    if (state === undefined) throw new Error(`a number of ${scheme.name} needs a state file`);
    return state.memory(kind);
  };
  return {
    clock: { nowMs: Date.now },
    random: { below: randomBelow },
    node: { given: options.node ?? 0, server: options.server ?? 0, pid, macs },
    memory: state?.memory("memory") ?? new Map<string, bigint>(),
    disk: {
      get: (name) => memoryOf("disk").get(name),
      set: (name, value) => memoryOf("disk").set(name, value),
    },
    counter: {
      next: () => {
        const counted = memoryOf("counter");
        const next = (counted.get(scheme.name) ?? 0n) + 1n;
        counted.set(scheme.name, next);
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

function assertStated({ name, fields }: Scheme, from: NodeSource, options: NodeOptions): void {
  const option = OPTIONS[from];
  const value = option === undefined ? pid : options[option];
  const capacity = fields
    .filter(({ source }) => source.kind === "node" && source.from === from)
    .reduce((product, field) => product * capacityOf(field), 1n);
  const greatest = capacity - 1n;
  if (value === undefined) {
    throw new TypeError(`${name} needs --${option} N, from 0 to ${greatest}, which no other process may have`);
  }
  if (BigInt(value) <= greatest) return;
  throw new RangeError(
    from === "pid"
      ? `${name} has room for process ids up to ${greatest}; this process is ${value}. Try again, or lower kernel.pid_max`
      : `--${option} must be from 0 to ${greatest} for ${name}, not ${value}`,
  );
}

const NO_MAC = "00:00:00:00:00:00";

/** Of the interfaces that lead out of the machine, in the order of the system, each once. */
function macsOfMachine(): readonly string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const macs = addresses.filter(({ internal, mac }) => !internal && mac !== NO_MAC).map(({ mac }) => mac);
  return [...new Set(macs)];
}

/** `randomInt` draws below this. */
const RANDOM_INT_BOUND = 2 ** 48 - 1;
const EXACT_COUNT = 2 ** 53;

/** Each value with the same chance, from the system's source. */
function randomBelow(bound: number): number {
  if (bound <= RANDOM_INT_BOUND) return randomInt(bound);
  // Values beyond the last whole multiple would make small values likelier.
  const limit = EXACT_COUNT - (EXACT_COUNT % bound);
  for (;;) {
    const drawn = Number(randomBytes(8).readBigUInt64BE() >> 11n);
    if (drawn < limit) return drawn % bound;
  }
}
