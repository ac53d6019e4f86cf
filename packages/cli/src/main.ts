/** The process of the `callnumber` command. Only this file reads its environment, and ends it. */
import process, { argv, env, exit, stderr, stdout } from "node:process";
import { isatty } from "node:tty";
import { redactSecrets } from "./invocation.js";
import { run } from "./run.js";

/**
 * With DEBUG set, the Redis client would log every command, AUTH with its password too. The minus excludes it, whatever `*`
 * includes. It reads the variable when it is loaded.
 */
if (env["DEBUG"] !== undefined) env["DEBUG"] += ",-ioredis:*";

// Every user of the machine can read the process list. The milliseconds before this, and the shell's history, are out of reach.
const redacted = argv.map(redactSecrets);
if (redacted.some((word, index) => word !== argv[index])) process.title = redacted.join(" ");

const exitCode = await run(argv.slice(2), {
  // Opening standard input has effects: only a command that reads it does.
  get stdin() {
    return process.stdin;
  },
  stdout,
  stderr,
  env,
  signals: process,
  exit,
  terminals: [0, 1, 2].filter((file) => isatty(file)),
});
exit(exitCode);
