/** The reference vectors, a generating context that a test controls, and what a scheme parses in the shape in which tests compare it. */
import { readFileSync } from "node:fs";
import {
  type GenerateContext,
  type Generated,
  type GenerateStep,
  type NodeIdentity,
  type Parsed,
  type Reading,
  SCHEMES,
  type Scheme,
  type Values,
} from "../src/index.js";

/** A vector has the fields under `in`; the rest is text or numbers by names of its own. */
export type Vector = Readonly<Record<string, string>> & { readonly in: Readonly<Record<string, number>> };

interface VectorFile {
  readonly schemes: Readonly<Record<string, unknown>>;
}

const file = JSON.parse(readFileSync(new URL("../test-vectors/schemes.json", import.meta.url), "utf8")) as VectorFile;

/** One part of the file, in the shape that the caller names; without one, its vectors. */
export function vectorsOf<Shape = { readonly vectors: readonly Vector[] }>(part: string): Shape {
  if (!Object.hasOwn(file.schemes, part)) throw new Error(`there are no vectors of "${part}"`);
  return file.schemes[part] as Shape;
}

export function schemeNamed(name: string): Scheme {
  const found = SCHEMES.find((scheme) => scheme.name === name);
  if (found === undefined) throw new Error(`there is no scheme "${name}"`);
  return found;
}

/** A memory of which the n-th write fails, and no other. */
export function memoryFailingAt(failing: number): Map<string, bigint> {
  const memory = new Map<string, bigint>();
  const set = memory.set.bind(memory);
  let writes = 0;
  memory.set = (name, value) => {
    if (++writes === failing) throw new Error("not written");
    return set(name, value);
  };
  return memory;
}

export interface Given extends Partial<Omit<GenerateContext, "node" | "clock">> {
  readonly nowMs?: number;
  readonly node?: Partial<NodeIdentity>;
}

interface TestContext extends GenerateContext {
  readonly clock: { at: number; nowMs(): number };
  readonly memory: Map<string, bigint>;
  readonly disk: Map<string, bigint>;
}

/** A clock that stands still until it is set, draws of 0, a counter from 1 on, unless given otherwise. */
export function contextWith({ nowMs = 1_600_000_000_000, node = {}, ...given }: Given = {}): TestContext {
  let counted = 0n;
  const clock = { at: nowMs, nowMs: () => clock.at };
  return {
    clock,
    random: { below: () => 0 },
    counter: { next: () => ++counted },
    memory: new Map(),
    disk: new Map(),
    node: { given: 1, server: 1, pid: 4_711, macs: [], ...node },
    ...given,
  } as TestContext;
}

/** Draws that return these, one after the other. */
export function draws(values: readonly number[]): GenerateContext["random"] {
  const left = [...values];
  return {
    below: (bound) => {
      const value = left.shift();
      if (value === undefined || value >= bound) throw new Error(`${value} was drawn below ${bound}`);
      return value;
    },
  };
}

/** The text of one step, which must generate. */
export function generated(scheme: Scheme, context: GenerateContext): string {
  return generatedStep(scheme.generate(context)).text;
}

export function generatedStep(step: GenerateStep): Generated {
  if (step.outcome === "generated") return step;
  throw new Error(`it waits until ${step.untilMs}`);
}

/** The values of a text that must match. */
export function fieldsOf(scheme: Scheme, text: string): Values {
  return mustMatch(scheme.parse(text)).values;
}

export function mustMatch(parsed: Parsed): Extract<Parsed, { matches: true }> {
  if (parsed.matches) return parsed;
  throw new Error(parsed.reason);
}

/** All numbers that a text may mean, the likeliest first. */
export function readingsOf(scheme: Scheme, text: string): readonly Reading[] {
  const parsed = scheme.parse(text);
  return parsed.matches ? [parsed, ...parsed.otherReadings] : [];
}
