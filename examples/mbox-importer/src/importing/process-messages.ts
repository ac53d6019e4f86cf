/** What the parent and its processes say to each other. Positions, counts and words; never the bytes of a message. */
import type { ErrorFacts } from "../errors.js";
import type { Range } from "../sources/range.js";
import type { BearerSettings } from "./bearer.js";
import type { RangeResult } from "./range-importer.js";

export interface ProcessSettings extends BearerSettings {
  /** 1, 2, 3 …: for people. */
  readonly processNumber: number;
  readonly archive: string;
  readonly coordinator: string;
  readonly namespace: string;
  readonly refill: "ahead" | "when_empty";
  /** How long a process waits for an absent coordinator. */
  readonly waitTimeoutMs: number;
}

export type ToProcess =
  | { readonly type: "start"; readonly settings: ProcessSettings }
  | { readonly type: "import"; readonly range: Range }
  | { readonly type: "stop" };

/** Since the process began. */
export interface RunCounts {
  readonly leased: number;
  readonly used: number;
}

export type FromProcess =
  | { readonly type: "imported"; readonly result: RangeResult; readonly runs: RunCounts }
  | { readonly type: "failed"; readonly error: ErrorFacts }
  | { readonly type: "waiting"; readonly reason: string }
  | { readonly type: "closed"; readonly runs: RunCounts };
