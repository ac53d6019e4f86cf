/**
 * The codec: call numbers to and from their parts, and to and from plain numbers.
 * Pure functions of the layout; no state, no dependency, the same in Node and in a browser.
 */
export type { CallNumber, CallNumberParts } from "./call-number.js";
export {
  CallNumberError,
  type CallNumberErrorCode,
  decodeCallNumber,
  isCallNumber,
  runInBytes,
  toNumber,
} from "./decoding.js";
export { callNumbersOfRun, encodeCallNumber, fromNumber } from "./encoding.js";
export {
  CALL_NUMBER_BITS,
  CALL_NUMBER_LENGTH,
  DIGITS,
  NUMBER_MAX,
  RUN_BITS,
  RUN_COUNT,
  RUN_MAX,
  SEQUENCE_BITS,
  SEQUENCE_COUNT,
  SEQUENCE_MAX,
  SHUFFLE,
  VERSION_BITS,
  VERSION_COUNT,
  VERSION_MAX,
} from "./layout.js";
