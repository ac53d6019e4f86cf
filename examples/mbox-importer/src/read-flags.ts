/** How a file is opened for reading that may turn out to be a pipe: that would hold up the process until somebody writes to it. */
import { constants } from "node:fs";

/** Windows has no word for not waiting. */
export const READ_WITHOUT_WAITING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
