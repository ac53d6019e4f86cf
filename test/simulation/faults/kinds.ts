/** All kinds of steps, by name: the course of things, and every fault that is injected. */
import { CLOCK_FAULTS } from "./clock-faults.js";
import { COURSE } from "./course.js";
import { HOST_FAULTS } from "./host-faults.js";
import type { Kind } from "./kind.js";
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
} satisfies Record<string, Kind>;

export type KindName = keyof typeof KINDS;

export const GROUPS: readonly string[] = [...new Set(Object.values(KINDS).map(({ group }) => group))];

export interface Step {
  readonly kind: KindName;
  readonly a: number;
  readonly b: number;
  /** How much of what is under way arrives before the next step: 0 to 4 everything, else little or nothing. */
  readonly flow: number;
}
