/** Every fault of the suite. */
import { ANSWERS } from "./kinds/answers.js";
import { CLOCKS } from "./kinds/clocks.js";
import { COORDINATORS } from "./kinds/coordinators.js";
import { CRASHES } from "./kinds/crashes.js";
import { EMBEDDED } from "./kinds/embedded.js";
import { IMPORTERS } from "./kinds/importers.js";
import { MANUAL_EDITS } from "./kinds/manual-edits.js";
import { OPERATORS } from "./kinds/operators.js";
import { PARTITION } from "./kinds/partition.js";
import { POSTGRES } from "./kinds/postgres.js";
import { CLUSTER, REPLICAS } from "./kinds/replicas.js";
import { TOGETHER } from "./kinds/together.js";
import type { Fault } from "./run-fault.js";

export const ALL_FAULTS: readonly Fault[] = [
  ...ANSWERS,
  ...CLOCKS,
  ...CLUSTER,
  ...COORDINATORS,
  ...CRASHES,
  ...EMBEDDED,
  ...IMPORTERS,
  ...OPERATORS,
  ...MANUAL_EDITS,
  ...PARTITION,
  ...POSTGRES,
  ...REPLICAS,
  ...TOGETHER,
];
