import { describeFaults } from "./describe-faults.js";
import { FAULTS_OF_REPLICAS } from "./faults-of-replicas.js";

describeFaults("replicas", FAULTS_OF_REPLICAS);
