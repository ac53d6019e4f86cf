/** What this machine has for minting: its clock, true randomness, its process id and MAC addresses; and what somebody must say. */
import { randomBytes, randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import process from "node:process";
import {
  capacityOf,
  type Field,
  type Memory,
  type MintContext,
  type NodeSource,
  type Scheme,
} from "@callnumber/schemes";
import type { StateFile } from "./state-file.js";

/** What was said on the command line. */
export interface NodeOptions {
  readonly node?: number;
  readonly server?: number;
  readonly mac?: readonly string[];
}

/** `randomInt` draws below this. */
const RANDOM_INT_BOUND = 2 ** 48 - 1;
const NO_MAC = "00:00:00:00:00:00";

/**
 * Nothing is guessed: what tells this node from others must be said where the machine does not know it.
 * @throws TypeError where it is not said, RangeError where it does not fit.
 */
export function machineContext(scheme: Scheme, options: NodeOptions, state: StateFile | undefined): MintContext {
  for (const from of ["given", "server", "pid", "mac hash"] as const) mustKnow(scheme, from, options);
  const memory = state?.memory("memory") ?? forgottenMemory();
  const counted = state?.memory("counter");
  return {
    clock: { nowMs: Date.now },
    random: { below },
    node: {
      given: options.node ?? 0,
      server: options.server ?? 0,
      pid: process.pid,
      macs: options.mac ?? macsOfMachine(),
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

const SAID_BY: Readonly<Partial<Record<NodeSource, { readonly option: keyof NodeOptions; readonly what: string }>>> = {
  given: { option: "node", what: "a number that no other node has" },
  server: { option: "server", what: "a number that no other server has" },
};

function mustKnow(scheme: Scheme, from: NodeSource, options: NodeOptions): void {
  const fields = scheme.fields.filter(({ source }) => source.kind === "node" && source.from === from);
  const said = SAID_BY[from];
  const value = from === "pid" ? process.pid : said === undefined ? undefined : options[said.option];
  if (fields.length === 0) return mustNotBeSaid(scheme, said?.option, value);
  if (from === "mac hash") return mustHaveMacs(scheme, options.mac ?? macsOfMachine());
  const greatest = fields.reduce((product, field) => product * capacityOf(field), 1n) - 1n;
  if (value === undefined) {
    throw new TypeError(
      `${scheme.name} must be told which ${from === "server" ? "server" : "node"} this is: --${said?.option} N, from 0 to ${greatest}, ${said?.what}`,
    );
  }
  if (BigInt(value as number) <= greatest) return;
  throw new RangeError(
    from === "pid"
      ? `${scheme.name} has ${widthOf(fields)} for the process id, up to ${greatest}; this process is ${value}. Try again, or lower kernel.pid_max`
      : `--${said?.option} must be from 0 to ${greatest} for ${scheme.name}, not ${value}`,
  );
}

/** Whoever says which node this is expects that it stands in the number. */
function mustNotBeSaid({ name }: Scheme, option: keyof NodeOptions | undefined, value: unknown): void {
  if (option === undefined || value === undefined) return;
  throw new TypeError(`a number of ${name} has no place for --${option}; leave it out`);
}

function mustHaveMacs({ name }: Scheme, macs: readonly string[]): void {
  if (macs.length > 0) return;
  throw new TypeError(
    `${name} tells nodes apart by their MAC addresses, and this machine shows none: --mac de:ad:be:ef:00:01`,
  );
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
  for (;;) {
    const bytes = randomBytes(8);
    const drawn = (bytes.readUInt32BE(0) >>> 11) * 2 ** 32 + bytes.readUInt32BE(4);
    if (drawn < bound) return drawn;
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

function widthOf(fields: readonly Field[]): string {
  return fields.map(({ width }) => ("bits" in width ? `${width.bits} bits` : `${width.digits} digits`)).join(" and ");
}
