import { describeFaults } from "./describe-faults.js";
import { FAULTS_OF_ONE_SERVER } from "./faults-of-one-server.js";

describeFaults("a single server", FAULTS_OF_ONE_SERVER);
