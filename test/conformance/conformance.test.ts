/**
 * `callnumber conformance`: our clients and the one of docs/how-to/write-a-client.md keep its rules, and for each rule there is a client that
 * breaks it and is found out. Guarantees: G9 (docs/guarantees.md).
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { run } from "../../packages/cli/dist/run.js";
import { BrokenRule, DrivenClient } from "../../packages/cli/src/conformance/driven-client.js";
import { LEASE_RULES } from "../../packages/cli/src/conformance/lease-rules.js";
import { RESPONSE_RULES } from "../../packages/cli/src/conformance/response-rules.js";
import { callnumber, folderForTest, REPOSITORY } from "../processes/command.js";
import { noPython, PYTHON, PYTHON_CLIENT, pythonEnv } from "../python/python.js";
import { drawn } from "../size-of-run.js";
import { BREAKS, brokenClient, exampleClient } from "./broken-clients.js";

const RULES = [...LEASE_RULES, ...RESPONSE_RULES].map(({ name }) => name);
/** A run of `npm test` tries one of them with each client. */
const PARTS = RULES.length;
const seed = inject("seed");
const NODE_CLIENT = join(REPOSITORY, "packages", "client", "test", "conformance-client.mjs");

interface Outcome {
  readonly kept: number;
  readonly broken: number;
  readonly notTried: number;
  readonly rules: readonly { readonly name: string; readonly result: string; readonly reason?: string }[];
}

async function tried(rules: readonly string[], words: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const { code, stdout, stderr } = await callnumber(
    ["conformance", "--json", "--rules", rules.join(","), "--", ...words],
    { env },
  );
  expect(stderr).toBe("");
  const outcome = JSON.parse(stdout) as Outcome;
  expect(code).toBe(outcome.broken === 0 ? 0 : 1);
  expect(outcome.rules.map(({ name }) => name)).toEqual(rules);
  return outcome;
}

const brokenIn = ({ rules }: Outcome) => rules.filter(({ result }) => result === "broken");

/** As PYTHONUNBUFFERED=1: each write reaches the pipe that child and parent share. After half a line the other one writes, too. */
const UNBUFFERED = `
import io, sys, time
class Pipe(io.FileIO):
    def write(self, data):
        count = super().write(data)
        if not bytes(data).endswith(b"\\n"): time.sleep(0.001)
        return count
sys.stdout = io.TextIOWrapper(Pipe(1, "w", closefd=False), write_through=True)
`;

/** A program of Python as the command of a client. */
async function written(code: string): Promise<readonly [words: readonly string[], env: NodeJS.ProcessEnv]> {
  const folder = await folderForTest();
  const path = join(folder, "client.py");
  await writeFile(path, code);
  return [[PYTHON as string, path], { ...pythonEnv(), TMPDIR: folder }];
}

test("the client for Node keeps the rules drawn by the seed, and can't be forked", async () => {
  const outcome = await tried(drawn(RULES, PARTS, seed), [process.execPath, NODE_CLIENT]);
  expect(brokenIn(outcome)).toEqual([]);
  const fork = await tried(["fork"], [process.execPath, NODE_CLIENT]);
  const rules = [{ result: "not tried", reason: 'the client answered "unsupported"' }];
  expect(fork).toMatchObject({ kept: 0, broken: 0, notTried: 1, rules });
});

describe.skipIf(noPython)("clients in Python", () => {
  test("the client for Python keeps the rules drawn by the seed", async () => {
    const client = join(PYTHON_CLIENT, "tests", "conformance_client.py");
    expect(brokenIn(await tried(drawn(RULES, PARTS, seed + 1), [PYTHON as string, client], pythonEnv()))).toEqual([]);
  });

  test("the client of docs/how-to/write-a-client.md keeps the rules drawn by the seed", async () => {
    expect(brokenIn(await tried(drawn(RULES, PARTS, seed + 2), ...(await written(exampleClient()))))).toEqual([]);
  });

  test("both keep the rules of forks where Python does not buffer what it prints", async () => {
    const [words, { TMPDIR, ...env }] = await written(exampleClient());
    const folder = String(TMPDIR);
    await writeFile(join(folder, "sitecustomize.py"), UNBUFFERED);
    const ours = [PYTHON as string, join(PYTHON_CLIENT, "tests", "conformance_client.py")];
    for (const command of [words, ours]) {
      const unbuffered = { ...env, PYTHONPATH: `${folder}:${env["PYTHONPATH"]}` };
      const outcome = await tried(["fork", "fork-knows"], command, unbuffered);
      expect(outcome).toMatchObject({ kept: 2, broken: 0 });
    }
  });

  test("a client that encodes wrongly is shown the number that it should have made", async () => {
    const wrong = exampleClient().replace("run << 14", "run << 13");
    const { rules } = await tried(["encoding", "token", "fork"], ...(await written(wrong)));
    const right = encodeCallNumber({ version: 0, run: 1_000, sequence: 0 });
    expect(rules.map(({ reason }) => reason)).toEqual([
      expect.stringMatching(
        `^generated \\w{8} of run 500, which was .*: the first number of its lease, of run 1000, is ${right}$`,
      ),
      "fix encoding first",
      "fix encoding first",
    ]);
  });

  test("a terminal shows each rule as it ends", async () => {
    const [words, env] = await written(exampleClient());
    const stderr = Object.assign(new PassThrough(), { isTTY: true });
    const [stdin, stdout] = [new PassThrough(), new PassThrough().resume()];
    const shown = text(stderr);
    const command = ["conformance", "--rules", "token,lease-request", "--", ...words];
    expect(await run(command, { stdin, stdout, stderr, env })).toBe(0);
    stderr.end();
    expect((await shown).split("\n").toSorted()).toEqual([
      "",
      "kept       lease-request",
      "kept       token",
      "tries 2 rules: about half a second each",
    ]);
  });

  test.each([
    ["takes each error for the end", 'answer = "ok"', /^"next 16384" generated \d+ numbers, then answered "ok"$/],
    ["prints a line without end", 'answer = "A" * 2_000_000', /^line \d+ of the client's standard output has no end$/],
  ])("a client that %s while it has no run breaks the rule at once", async (_, instead, reason) => {
    const wrong = exampleClient().replace('answer = f"error {error}"', instead);
    const { rules } = await tried(["no-run"], ...(await written(wrong)));
    expect(rules).toMatchObject([{ result: "broken", reason: expect.stringMatching(reason) }]);
  });

  test("each rule has a client that breaks it", () => {
    expect(Object.keys(BREAKS).sort()).toEqual(RULES.toSorted());
  });

  test.concurrent.each(drawn(RULES, PARTS, seed + 3))("a client that breaks %s is found out", async (rule) => {
    const outcome = await tried([rule], ...(await written(brokenClient(rule))));
    expect(outcome.rules).toEqual([{ ...outcome.rules[0], result: "broken", reason: expect.any(String) }]);
  });
});

describe("a program that is not a client", () => {
  const conformance = (...words: readonly string[]) =>
    callnumber(["conformance", "--rules", "token", "--", ...words], { env: process.env });

  test.each([
    ["process.exit(3)", 'the client ended (3) instead of an answer to "next 1"\n'],
    ['console.error("no such module"); process.exit(1)', 'instead of an answer to "next 1": no such module\n'],
    ["process.stdin.pipe(process.stdout)", '"next 1" is not a call number, ok, error or unsupported\n'],
    ['console.log("error no coordinator"); setInterval(() => {}, 1e6)', "gave up: no coordinator\n"],
    ['console.log("ok"); setInterval(() => {}, 1e6)', '"next 1" generated 0 numbers, then answered "ok"\n'],
  ])("%s is a misuse, with the command and the reason, before any rule", async (script, reason) => {
    const { code, stdout, stderr } = await conformance(process.execPath, "-e", script);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^tries 1 rules.*\ncallnumber: no client: ".* -e .*" generates no first number: /s);
    expect(stderr).toContain(reason);
    expect(code).toBe(2);
  });

  test("one that generates numbers of no run of its own breaks encoding, and no other rule is tried", async () => {
    const script = 'console.log("2VznWE2i\\nok"); setInterval(() => {}, 1e6)';
    const { code, stdout } = await conformance(process.execPath, "-e", script);
    expect(stdout.split("\n").slice(1)).toEqual([
      expect.stringMatching(/^encoding +broken +generates/),
      expect.stringMatching(/^token +not tried +sends/),
      "encoding: generated 2VznWE2i of run 99, which was not leased to it: it leased none",
      "not tried: fix encoding first",
      "0 kept, 1 broken, 1 not tried",
      "",
    ]);
    expect(code).toBe(1);
  });

  test("a command that can't be started is a misuse, as is a rule that is none", async () => {
    const { code, stderr } = await conformance("/no/such/program");
    expect(stderr).toContain("callnumber: the client can't be started: spawn /no/such/program ENOENT\n");
    expect(code).toBe(2);
    const other = await callnumber(["conformance", "--rules", "fork,nothing", "--", "true"]);
    expect(other.stderr).toContain('"nothing" is none of encoding, fewer-runs');
    expect(other.code).toBe(2);
  });
});

describe("a program that does not end by itself", () => {
  const driven = (script: string, hangMs?: number) => {
    const client = new DrivenClient([process.execPath, "-e", script], process.env, hangMs);
    onTestFinished(() => client.kill());
    return client;
  };
  const broken = (reason: string) => new BrokenRule(reason);

  test.each([
    ["is silent", "process.stdin.resume()"],
    ["closes its standard output", 'require("fs").closeSync(1); setInterval(() => {}, 1e6)'],
    ["prints numbers slowly, without an answer", 'setInterval(() => console.log("2VznWE2i"), 300)'],
  ])("one that %s has a limit for the whole of an answer", async (_, script) => {
    await expect(driven(script, 1_000).ask("next 1")).rejects.toEqual(broken('no answer to "next 1" within 1 s'));
  });

  test("one that goes on after the end of its input has the same limit", async () => {
    const client = driven("setInterval(() => {}, 1e6)", 1_000);
    await expect(client.end()).rejects.toEqual(broken("did not end after its input within 1 s"));
  });

  test("one that prints numbers without end is stopped soon after those that it was asked for", async () => {
    const client = driven('for (;;) require("fs").writeSync(1, "2VznWE2i\\n".repeat(1000))');
    await expect(client.ask("fork 3")).rejects.toEqual(broken('"fork 3" generated more than 6 numbers'));
  });
});
