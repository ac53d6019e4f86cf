/**
 * node:fs with faults: the k-th call on files of one folder fails, and every descriptor of those files is followed from its opening to
 * its closing. What Node does inside one of its own functions is followed too.
 */
import { createRequire, syncBuiltinESMExports } from "node:module";

type AnyFunction = (...parameters: unknown[]) => unknown;
const fs = createRequire(import.meta.url)("node:fs") as Record<string, AnyFunction>;

export interface Fault {
  /** From 1: which call fails. */
  readonly call: number;
  readonly code: string;
  /** Whether the call has its effect, half of it for a write, although it fails. */
  readonly hasEffect: boolean;
  /** Whether every later call fails too. */
  readonly isLasting: boolean;
}

export interface Traced {
  readonly callCount: number;
  /** Uses of a descriptor that is closed, closings of one that is closed, and a closing that was left out. */
  readonly misuses: readonly string[];
}

const CODES = ["EIO", "ENOSPC", "ENOENT", "EROFS", "EMFILE"];
const ON_PATHS = [
  "openSync",
  "statSync",
  "lstatSync",
  "statfsSync",
  "readFileSync",
  "writeFileSync",
  "renameSync",
  "unlinkSync",
  "readdirSync",
  "mkdirSync",
  "chmodSync",
  "realpathSync",
  "readlinkSync",
];
const READS = /^(read|stat|lstat|fstat|realpath|close)/;
const ON_DESCRIPTORS = ["closeSync", "readSync", "writeSync", "fsyncSync", "ftruncateSync", "fstatSync"];

/** Acts while `fault` is in the way of files in `folders`. `act` catches what fails. */
export async function withFault(
  folders: readonly string[],
  fault: Fault | undefined,
  act: () => void | Promise<void>,
): Promise<Traced> {
  const originals = new Map([...ON_PATHS, ...ON_DESCRIPTORS].map((name) => [name, fs[name] as AnyFunction]));
  const isOpen = new Map<unknown, boolean>();
  const misuses: string[] = [];
  let callCount = 0;

  for (const [name, original] of originals) {
    fs[name] = (...parameters) => {
      const [first] = parameters;
      const isOurs = typeof first === "number" ? isOpen.has(first) : folders.some((at) => String(first).startsWith(at));
      if (!isOurs) return noteOpened(name, original(...parameters), false);
      if (isOpen.get(first) === false) misuses.push(`${name} of a closed descriptor`);
      callCount++;
      const fails =
        fault !== undefined && isDue(fault, callCount) && (fault.code !== "EROFS" || changes(name, parameters));
      // A descriptor is gone after close(2), whatever that answers.
      if (name === "closeSync") isOpen.set(first, false);
      // No test loses power: a sync would only take time.
      if (!fails) return name === "fsyncSync" ? undefined : noteOpened(name, original(...parameters), true);
      if (name === "closeSync") original(first);
      else if (name === "writeSync" && fault.hasEffect) writeHalf(original, parameters);
      else if (name !== "openSync" && name !== "fsyncSync" && fault.hasEffect) original(...parameters);
      // A folder that exists is never reported as missing.
      const code = name === "statfsSync" && fault.code === "ENOENT" ? "EIO" : fault.code;
      throw Object.assign(new Error(`${code}: injected into ${name}`), { code, syscall: name });
    };
  }
  function noteOpened(name: string, result: unknown, isOurs: boolean): unknown {
    if (name !== "openSync") return result;
    if (isOurs) isOpen.set(result, true);
    else isOpen.delete(result);
    return result;
  }

  syncBuiltinESMExports();
  try {
    await act();
  } finally {
    for (const [name, original] of originals) fs[name] = original;
    syncBuiltinESMExports();
  }
  for (const isStillOpen of isOpen.values()) if (isStillOpen) misuses.push("a descriptor was never closed");
  return { callCount, misuses };
}

function isDue({ call, isLasting }: Fault, callCount: number): boolean {
  return callCount === call || (isLasting && callCount > call);
}

/** What a file system that is read-only refuses. */
function changes(name: string, [, flags]: readonly unknown[]): boolean {
  return name === "openSync" ? flags !== "r" : !READS.test(name);
}

function writeHalf(write: AnyFunction, [file, bytes, offset, length, position]: unknown[]): void {
  const text = typeof bytes === "string" ? Buffer.from(bytes) : (bytes as Buffer);
  const from = typeof bytes === "string" ? 0 : Number(offset ?? 0);
  const count = typeof bytes === "string" ? text.length : Number(length ?? text.length);
  write(file, text, from, Math.floor(count / 2), (typeof bytes === "string" ? offset : position) ?? null);
}

/** Faults of every call in every way, with the codes by turns. */
export function* faultsOf(callCount: number): Generator<Fault> {
  let count = 0;
  for (let call = 1; call <= callCount; call++) {
    for (const hasEffect of [false, true]) {
      for (const isLasting of [false, true]) {
        yield { call, code: CODES[count++ % CODES.length] as string, hasEffect, isLasting };
      }
    }
  }
}
