/**
 * Call numbers from one coordinator, a number or many at a time: with `curl`, from Python's standard library over one connection, with
 * `callnumber next`, and from the client, which leases runs instead. The coordinator is a process of its own on an embedded store.
 */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { createClient } from "@callnumber/client";
import { test } from "vitest";
import { COMMAND, folderForTest, serveProcess } from "../test/processes/command.js";
import {
  describeMachine,
  duration,
  formatFigure,
  formatSpread,
  inRounds,
  median,
  roundCount,
  size,
} from "./harness.js";
import { publish } from "./report.js";

const ROUND_COUNT = roundCount(7);
const COLUMNS = ["way", "numbers a second", "ms a call"];

/** Takes numbers over one connection, `calls` times. Prints the seconds: the start of Python is not counted. */
const PYTHON = `
import http.client, sys, time
port, path, calls = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
started = time.perf_counter()
for _ in range(calls):
    connection.request("POST", path, headers={"Accept": "text/plain"})
    response = connection.getresponse()
    assert response.status == 200 and len(response.read()) % 9 == 0
print(time.perf_counter() - started)
`;
/** A request of its own for each call, as \`urllib.request\` sends it. */
const URLLIB = `
import sys, time, urllib.request
url, calls = "http://127.0.0.1:" + sys.argv[1] + sys.argv[2], int(sys.argv[3])
started = time.perf_counter()
for _ in range(calls):
    request = urllib.request.Request(url, method="POST", headers={"Accept": "text/plain"})
    with urllib.request.urlopen(request, timeout=60) as response:
        assert len(response.read()) % 9 == 0
print(time.perf_counter() - started)
`;

interface Way {
  readonly name: string;
  readonly calls: number;
  /** Numbers of one call. */
  readonly count: number;
  /** Resolves to the time of all calls, ms. */
  readonly measure: (way: Way) => Promise<number>;
}

test("call numbers over HTTP and from the client", async () => {
  const store = `sqlite:${await folderForTest()}/store.db`;
  const { url } = await serveProcess(store, "--create", "--log-level", "info");
  const path = ({ count }: Way) => `/v1/namespaces/main/numbers?count=${count}`;
  const run = async (program: string, ...words: readonly string[]) =>
    (await promisify(execFile)(program, words, { maxBuffer: 64 * 1024 * 1024 })).stdout;
  const hasPython = spawnSync("python3", ["--version"]).status === 0;
  const inPython = (program: string) => async (way: Way) =>
    1_000 * Number(await run("python3", "-c", program, new URL(url).port, path(way), String(way.calls)));
  const withCurl = (way: Way) =>
    duration(async () => {
      for (let call = 0; call < way.calls; call++) {
        await run("curl", "-fsS", "-X", "POST", "-H", "Accept: text/plain", url + path(way));
      }
    });
  const withNext = (way: Way) =>
    duration(async () => {
      for (let call = 0; call < way.calls; call++) {
        await run(process.execPath, COMMAND, "next", "-n", String(way.count), "--coordinator", url);
      }
    });
  const client = createClient({ coordinator: url, holder: { name: "bench" } });
  const withClient = (way: Way) =>
    duration(async () => {
      for (let call = 0; call < way.calls; call++) {
        if (way.count === 1) await client.next();
        else await client.take(way.count);
      }
    });
  const ways: readonly Way[] = [
    { name: "`callnumber next`, a process for each number", calls: size(3, 1), count: 1, measure: withNext },
    { name: "`curl`, a process for each number", calls: size(20, 3), count: 1, measure: withCurl },
    { name: "`curl`, 10,000 numbers at a time", calls: size(5, 1), count: 10_000, measure: withCurl },
    ...(hasPython
      ? [
          { name: "Python, `urllib.request`", calls: size(200, 10), count: 1, measure: inPython(URLLIB) },
          { name: "Python, one connection", calls: size(500, 10), count: 1, measure: inPython(PYTHON) },
          {
            name: "Python, one connection, 100 at a time",
            calls: size(300, 10),
            count: 100,
            measure: inPython(PYTHON),
          },
          {
            name: "Python, one connection, 10,000 at a time",
            calls: size(20, 2),
            count: 10_000,
            measure: inPython(PYTHON),
          },
        ]
      : []),
    { name: "the client, `await next()`", calls: size(500_000, 10_000), count: 1, measure: withClient },
    { name: "the client, `take(1000)`", calls: size(2_000, 50), count: 1_000, measure: withClient },
  ];
  const rounds = await inRounds(
    ways.map((way) => () => way.measure(way)),
    ROUND_COUNT,
  );
  await client.close();
  publish("numbers", {
    heading: "Call numbers over HTTP and from the client",
    sentences: [
      `${describeMachine()} The coordinator is a process of its own on the same machine, with an embedded store and its log at level info. One caller, which waits for each call. ${ROUND_COUNT} rounds; medians and quartiles. The start of Python is not counted, that of \`curl\` and \`callnumber next\` is.`,
    ],
    table: {
      columns: COLUMNS,
      rows: ways.map(({ name, calls, count }, index) => {
        const times = rounds[index] ?? [];
        const perSecond = times.map((ms) => (calls * count * 1_000) / ms);
        return [name, formatSpread(perSecond), formatFigure(median(times) / calls)];
      }),
    },
  });
});
