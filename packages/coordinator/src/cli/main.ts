/**
 * The `callnumber` command: finds the sub-command and runs it. What a sub-command needs is loaded only when it is asked for.
 * Only this folder reads the environment and ends the process.
 */
import { argv, env } from "node:process";
import { hidePasswords } from "./hidden-passwords.js";
import { silenceRedisClient } from "./quiet-redis-client.js";
import { RELEASE } from "./release.js";

silenceRedisClient(env);
const typed = hidePasswords(argv);

if (argv.length === 3 && (argv[2] === "--version" || argv[2] === "-V")) {
  console.log(RELEASE);
} else {
  const { runProgram } = await import("./program.js");
  await runProgram(argv, typed);
}
