/** The reference vectors, read once. Whole numbers beyond 2^53 are strings in there. */
import { readFileSync } from "node:fs";

export interface Vector<In> {
  readonly in: In;
  readonly id: string;
  readonly hex: string;
  readonly binary: string;
  readonly signed64: string;
  readonly time: string;
}

interface VectorFile {
  readonly schemes: Readonly<Record<string, unknown>>;
}

const file = JSON.parse(readFileSync(new URL("../test-vectors/schemes.json", import.meta.url), "utf8")) as VectorFile;

/** One part of the file, in the shape that the caller names. */
export function vectorsOf<Shape>(part: string): Shape {
  if (!Object.hasOwn(file.schemes, part)) throw new Error(`there are no vectors of "${part}"`);
  return file.schemes[part] as Shape;
}

export const VECTOR_PARTS = Object.keys(file.schemes);
