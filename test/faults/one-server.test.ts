import { describeFaults } from "./describe-faults.js";
import { ANSWERS } from "./kinds/answers.js";
import { CRASHES } from "./kinds/crashes.js";
import { OTHER_HANDS } from "./kinds/other-hands.js";

describeFaults("a single server", CRASHES, OTHER_HANDS, ANSWERS);
