/** Every bad input of the table, family by family. */
import { ADDRESS_ROWS } from "./address-rows.js";
import { BODY_ROWS } from "./body-rows.js";
import { EVIDENCE_ROWS } from "./evidence-rows.js";
import { FRAMING_ROWS } from "./framing-rows.js";
import { AUTHORIZATION_ROWS, HEAD_ROWS } from "./head-rows.js";
import type { Row } from "./row.js";
import { LONG_WAITING_ROWS, WAITING_ROWS } from "./waiting-rows.js";

export const SHORT_ROWS: readonly Row[] = [
  ...BODY_ROWS,
  ...EVIDENCE_ROWS,
  ...ADDRESS_ROWS,
  ...HEAD_ROWS,
  ...AUTHORIZATION_ROWS,
  ...FRAMING_ROWS,
  ...WAITING_ROWS,
];

export const ALL_ROWS: readonly Row[] = [...SHORT_ROWS, ...LONG_WAITING_ROWS];
