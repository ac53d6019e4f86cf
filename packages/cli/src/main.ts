/** The process of the `callnumber` command. Only this file reads its environment, and ends it. */
import process, { argv, env, exit, stderr, stdout } from "node:process";
import { isatty } from "node:tty";
import { withoutPasswords } from "./hidden-passwords.js";
import { run } from "./run.js";

/**
 * The Redis client logs every command that it sends for whoever sets DEBUG, the log-in with its password among them: not here. With a
 * minus it is left out, whatever `*` says. Before the client is loaded: it reads the variable once.
 */
if (env["DEBUG"] !== undefined) env["DEBUG"] += ",-ioredis:*";

// Taken out of the process list as soon as we run. What stood there before, for some milliseconds, and the shell's history are out of reach.
const shownWords = withoutPasswords(argv);
if (shownWords.some((word, index) => word !== argv[index])) process.title = shownWords.join(" ");

const exitCode = await run(argv.slice(2), {
  // A standard input that no command reads is left alone.
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
