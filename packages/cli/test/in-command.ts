/** What only runs within a command, without its command line. */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { invoked } from "../src/command-io.js";

/** From now on what a test file does is done by a command, on no terminal and without settings. */
export function beInCommand(signals = new EventEmitter()): void {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  void invoked({ ...streams, env: {}, signals, exit: () => {} }, async () => {});
}
