import { describeFaults } from "./describe-faults.js";
import { CLOCKS } from "./kinds/clocks.js";
import { COORDINATORS } from "./kinds/coordinators.js";
import { IMPORTERS } from "./kinds/importers.js";
import { OPERATORS } from "./kinds/operators.js";

describeFaults("coordinators, clocks, operators and importers", COORDINATORS, CLOCKS, OPERATORS, IMPORTERS);
