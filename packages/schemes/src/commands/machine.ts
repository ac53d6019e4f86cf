/** What generating takes from this machine: its clock, random numbers, process id and MAC addresses; and what the command line must state. */
import { randomBytes } from "node:crypto";
import { networkInterfaces } from "node:os";
import { pid } from "node:process";
import { capacityOf, type NodeSource, nodeFields, nodeSourcesOf } from "../fields.js";
import type { GenerateContext, Memory, NodeIdentity, Scheme } from "../scheme.js";
import { EXACT_BELOW, uniformBelow } from "../simulation/random.js";

/** What the command line states. */
export interface NodeOptions {
  readonly node?: number;
  readonly server?: number;
}

/** The option that states each source. A process knows its id. */
const OPTIONS = { given: "node", server: "server", "mac hash": "node" } as const;

/**
 * Returns what distinguishes this process. Nothing is guessed: what the machine does not know must be stated.
 * @throws TypeError where it is not stated, or the scheme has no field for it; RangeError where it does not fit.
 */
export function nodeIdentity(scheme: Scheme, options: NodeOptions): NodeIdentity {
  const { node, server } = options;
  const macs = node === undefined ? macsOfMachine() : [];
  const sources = nodeSourcesOf(scheme.fields);
  for (const option of ["node", "server"] as const) {
    if (options[option] === undefined) continue;
    if (sources.some((from) => from !== "pid" && OPTIONS[from] === option)) continue;
    throw new TypeError(`a number of ${scheme.name} has no place for --${option}; leave it out`);
  }
  for (const from of sources) {
    if (from !== "mac hash" || macs.length === 0) assertStated(scheme, from, options);
  }
  return { given: node ?? 0, server: server ?? 0, pid, macs };
}

function assertStated({ name, fields }: Scheme, from: NodeSource, options: NodeOptions): void {
  const greatest = capacityOf(...nodeFields(fields, from)) - 1n;
  if (from === "pid") {
    if (pid <= greatest) return;
    throw new RangeError(
      `${name} has room for process ids up to ${greatest}; this process is ${pid}. Try again, or lower kernel.pid_max`,
    );
  }
  const option = OPTIONS[from];
  const value = options[option];
  if (value === undefined) {
    throw new TypeError(`${name} needs --${option} N, from 0 to ${greatest}, which no other process may have`);
  }
  if (value > greatest) throw new RangeError(`--${option} must be from 0 to ${greatest} for ${name}, not ${value}`);
}

/** @param memoryOf returns the state under names of one kind: a sequence and a counter may have the same name. */
export function machineContext(
  scheme: Scheme,
  node: NodeIdentity,
  memoryOf: (kind: string) => Memory,
): GenerateContext {
  const counted = memoryOf("counter");
  return {
    clock: { nowMs: Date.now },
    random: { below: (bound) => uniformBelow(bound, random53Bits, EXACT_BELOW) },
    node,
    memory: memoryOf("memory"),
    disk: memoryOf("disk"),
    counter: {
      next: () => {
        const next = (counted.get(scheme.name) ?? 0n) + 1n;
        counted.set(scheme.name, next);
        return next;
      },
    },
  };
}

const NO_MAC = "00:00:00:00:00:00";

/** Of the interfaces that lead out of the machine, in the order of the system, each once. */
function macsOfMachine(): readonly string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const macs = addresses.filter(({ internal, mac }) => !internal && mac !== NO_MAC).map(({ mac }) => mac);
  return [...new Set(macs)];
}

/** From the system's source. */
function random53Bits(): number {
  return Number(randomBytes(8).readBigUInt64BE() >> 11n);
}
