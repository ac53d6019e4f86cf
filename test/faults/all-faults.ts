/** Every fault of the suite, in the order of the design's list. */
import type { Fault } from "./fault.js";
import { FAULTS_OF_COORDINATORS } from "./faults-of-coordinators.js";
import { FAULTS_OF_ONE_SERVER } from "./faults-of-one-server.js";
import { FAULTS_OF_REPLICAS } from "./faults-of-replicas.js";

export const ALL_FAULTS: readonly Fault[] = [
  ...FAULTS_OF_ONE_SERVER,
  ...FAULTS_OF_COORDINATORS,
  ...FAULTS_OF_REPLICAS,
].sort((one, other) => one.number - other.number);
