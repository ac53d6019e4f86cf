/** What only runs within a command, without its command line. */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { invoked } from "../src/cli/command-io.js";

export async function inCommand<T>(act: () => Promise<T>, signals = new EventEmitter()): Promise<T> {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  let result: Promise<T> | undefined;
  await invoked({ ...streams, env: {}, signals }, async () => void (await (result = act())));
  return await (result as Promise<T>);
}
