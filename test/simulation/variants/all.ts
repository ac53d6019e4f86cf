/** Every variant that the suite must catch: designs that were tried and failed, and the guard with one defence taken away. */
import { ADVANCE_DENSE, ADVANCE_EARLY } from "./advance-dense.js";
import { AGE_TIMES_RATE } from "./age-times-rate.js";
import { JUMP_BEFORE_WAIT } from "./jump-before-wait.js";
import { MOVE_KEEPS_ID } from "./move-keeps-id.js";
import { NO_CHECKSUM } from "./no-checksum.js";
import { NO_EPOCH } from "./no-epoch.js";
import { NO_FLOOR } from "./no-floor.js";
import { NO_PARTIAL_SYNC } from "./no-partial-sync.js";
import { NO_QUORUM } from "./no-quorum.js";
import { RANGE_BACKWARDS } from "./range-backwards.js";
import { END_ALWAYS, REFUSE_ALWAYS } from "./refuse-always.js";
import type { Variant } from "./variant.js";

export const VARIANTS: readonly Variant[] = [
  AGE_TIMES_RATE,
  NO_CHECKSUM,
  JUMP_BEFORE_WAIT,
  RANGE_BACKWARDS,
  NO_EPOCH,
  NO_PARTIAL_SYNC,
  NO_QUORUM,
  NO_FLOOR,
  ADVANCE_DENSE,
  ADVANCE_EARLY,
  MOVE_KEEPS_ID,
  REFUSE_ALWAYS,
  END_ALWAYS,
];
