/** For the `callnumber` command alone: may change in any release, and is documented by its sources only. */
export { boundedText, fetchFailure } from "./fetch.js";
