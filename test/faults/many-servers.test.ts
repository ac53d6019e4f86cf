import { describeFaults } from "./describe-faults.js";
import { CLUSTER } from "./kinds/cluster.js";
import { EMBEDDED } from "./kinds/embedded.js";
import { REPLICAS } from "./kinds/replicas.js";

describeFaults("many servers, and of none", REPLICAS, CLUSTER, EMBEDDED);
