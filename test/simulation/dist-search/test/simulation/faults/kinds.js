/** All kinds of steps, by name: the course of things, and every fault that is injected. */
import { CLOCK_FAULTS } from "./clock-faults.js";
import { COURSE } from "./course.js";
import { HOST_FAULTS } from "./host-faults.js";
import { NETWORK_FAULTS } from "./network-faults.js";
import { OPERATOR_DEEDS } from "./operator-deeds.js";
import { RECORD_FAULTS } from "./record-faults.js";
import { SERVER_FAULTS } from "./server-faults.js";
export const KINDS = {
    ...COURSE,
    ...NETWORK_FAULTS,
    ...HOST_FAULTS,
    ...SERVER_FAULTS,
    ...RECORD_FAULTS,
    ...CLOCK_FAULTS,
    ...OPERATOR_DEEDS,
};
export const GROUPS = [...new Set(Object.values(KINDS).map(({ group }) => group))];
//# sourceMappingURL=kinds.js.map