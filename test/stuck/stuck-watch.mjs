/** The thread beside a test file (watch-worker.ts). Counts its own seconds, not the clock's: a machine that slept was not stuck. */
import { writeSync } from "node:fs";
import { Session } from "node:inspector";
import process from "node:process";
import { parentPort, workerData } from "node:worker_threads";

const STANDARD_ERROR = 2;
/** Until the process has said where it stands. In a call of the system it never does. */
const ANSWER_MS = 5_000;

const { stuckAfterSeconds } = workerData;
let file = "a test file";
parentPort.on("message", (testPath) => {
  file = testPath;
});
const counter = new Int32Array(workerData.turns);
let seen = -1;
let stillSeconds = 0;

const watching = setInterval(() => {
  const turns = Atomics.load(counter, 0);
  stillSeconds = turns === seen ? stillSeconds + 1 : 0;
  seen = turns;
  if (stillSeconds < stuckAfterSeconds) return;
  clearInterval(watching);
  askWhere();
}, 1_000);

function askWhere() {
  const session = new Session();
  session.connectToMainThread();
  session.on("Debugger.paused", ({ params }) => {
    const frames = params.callFrames.map(
      ({ functionName, url, location }) =>
        `    at ${functionName || "(anonymous)"} (${url}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1})`,
    );
    end(`it stands in\n${frames.join("\n")}`);
  });
  session.post("Debugger.enable");
  session.post("Debugger.pause");
  setTimeout(() => end("it waits in a call of the system"), ANSWER_MS);
}

function end(where) {
  writeSync(STANDARD_ERROR, `${file} made no turn for ${stuckAfterSeconds} s and is ended: ${where}\n`);
  process.kill(process.pid, "SIGKILL");
}
