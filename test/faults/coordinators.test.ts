import { describeFaults } from "./describe-faults.js";
import { FAULTS_OF_COORDINATORS } from "./faults-of-coordinators.js";

describeFaults("coordinators", FAULTS_OF_COORDINATORS);
