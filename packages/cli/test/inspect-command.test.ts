/** `callnumber inspect` as an operator types it: a number, a URL, a slip, or a million lines through a pipe. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { inspectResponseSchema } from "@callnumber/protocol/schemas";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { callnumber, folderForTest, serve, shell } from "../../../test/processes/command.js";

const NOBODY = "http://127.0.0.1:1";

/** A coordinator whose first leases begin at run 99, and numbers of two processes. */
async function world() {
  const store = `sqlite:${join(await folderForTest(), "store.db")}`;
  await callnumber(["init", "--store", store, "--first-run", "99"]);
  const { url, stop } = await serve(store);
  const to = ["--coordinator", url];
  const made = async () => (await callnumber(["next", "-n", "3", ...to])).stdout.trim().split("\n") as string[];
  return { to, url, stop, numbers: [...(await made()), ...(await made())] as string[] };
}

/** Answers each question after a time of its own. */
async function slowCoordinator() {
  let [asked, open, most] = [0, 0, 0];
  const random = seededRandom(inject("seed"));
  const server = createServer((request, response) => {
    asked++;
    most = Math.max(most, ++open);
    const callNumber = new URL(request.url ?? "", NOBODY).pathname.split("/").at(-1);
    const subject = { namespace: "main", callNumber, explanation: "", verdict: "other_version" };
    setTimeout(() => {
      open--;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...subject, version: 1, run: 1, sequence: 1, hints: [] }));
    }, 20 * random());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, asked: () => asked, mostAtOnce: () => most };
}

describe("one number", () => {
  test("is told with its holder, host, pid, coordinator, time and neighbors; a URL is taken for the number in it", async () => {
    const { to, numbers } = await world();
    const [callNumber = ""] = numbers;
    const told = await callnumber(["inspect", callNumber, "--neighbors", ...to]);
    expect(told.code).toBe(0);
    expect(told.stdout).toMatch(
      new RegExp(
        `^${callNumber}  reported: run 99 was leased to callnumber-next \\(\\S+, pid \\d+\\) at \\S+Z, within what it reported\n` +
          "  version 0, run 99, sequence 0\n  leased by coordinator \\S+\n  the same process got nothing before it, and run 100 after it\n$",
      ),
    );
    const url = await callnumber([
      "inspect",
      `https://lists.example.org/message/${callNumber}?x=1`,
      "--neighbors",
      ...to,
    ]);
    expect(url).toEqual(told);
  });

  test("that is malformed is pointed at, and told what it may have been meant for", async () => {
    const { to, numbers } = await world();
    const [callNumber = ""] = numbers;
    const slipped = `${callNumber.slice(0, 4)}-${callNumber.slice(4)}`;
    const told = await callnumber(["inspect", slipped, ...to]);
    expect(told.code).toBe(1);
    expect(told.stdout.split("\n")).toEqual([
      `${slipped}  malformed: "${slipped}" has 9 characters; a call number has 8`,
      `  perhaps ${callNumber}: without what stands around it; leased to callnumber-next, reported`,
      "",
    ]);
    const pointed = await callnumber(["inspect", "2Vz_\u202eE2i", ...to]);
    expect(pointed.stdout).toContain("\n   ^\n");
    expect(pointed.stdout).not.toContain("\u202e");
  });

  test("that is malformed is said to be so without a coordinator, too; any other needs one", async () => {
    const nobody = ["--coordinator", NOBODY];
    const { code, stdout } = await callnumber(["inspect", "nonsense!", "--json", ...nobody]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject([{ verdict: "malformed", callNumber: "nonsense!", hints: [] }]);
    expect(await callnumber(["inspect", "2VznWE2i", ...nobody])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("coordinator_unreachable"),
    });
  });

  test("that fits no path is malformed, and no coordinator is asked about it", async () => {
    const { url, asked } = await slowCoordinator();
    const odd = ["..", ".", "", "x".repeat(1_000), "ж".repeat(100)];
    const { code, stdout } = await callnumber(["inspect", ...odd, "--json", "--coordinator", url]);
    expect(code).toBe(1);
    const answers = JSON.parse(stdout) as { verdict: string; callNumber: string }[];
    expect(answers.map(({ verdict, callNumber }) => [verdict, callNumber])).toEqual(
      odd.map((text) => ["malformed", text]),
    );
    expect(asked()).toBe(0);
    await callnumber(["inspect", "nonsense!", "--coordinator", url]);
    expect(asked()).toBe(1);
  });
});

describe("many, on standard input", () => {
  test("are answered in their order, as a table or a line of JSON each; what can't exist makes the exit code 1", async () => {
    const { to, numbers } = await world();
    const [first = "", second = ""] = numbers;
    const input = `${first}\r\n  https://lists.example.org/${second}\n\nnonsense!\n${numbers.at(-1)}`;
    const asJson = await callnumber(["inspect", "-", "--json", ...to], { input });
    expect(asJson.code).toBe(1);
    const answers = asJson.stdout
      .trimEnd()
      .split("\n")
      .map((line) => inspectResponseSchema.parse(JSON.parse(line)));
    expect(answers.map(({ callNumber, verdict }) => [callNumber, verdict])).toEqual([
      [first, "reported"],
      [second, "reported"],
      ["nonsense!", "malformed"],
      [numbers.at(-1), "reported"],
    ]);
    const asTable = await callnumber(["inspect", "-", ...to], { input: numbers.join("\n") });
    expect(asTable.code).toBe(0);
    const [head, ...rows] = asTable.stdout.trimEnd().split("\n");
    expect(head).toMatch(/^CALL NUMBER +VERDICT +RUN +SEQ +LEASED AT +WHO/);
    expect(rows.map((row) => row.slice(0, 8))).toEqual(numbers);
    expect(rows[0]).toMatch(/reported +99 +0 +\S+Z +callnumber-next on \S+, pid \d+$/);
  });

  test("are asked about 4 at a time, and told in their order, however the answers come", async () => {
    const place = await slowCoordinator();
    const numbers = Array.from({ length: 400 }, (_, run) => encodeCallNumber({ version: 0, run, sequence: 0 }));
    const asked = await callnumber(["inspect", "-", "--json", "--coordinator", place.url], {
      input: numbers.join("\n"),
    });
    const answers = asked.stdout.trimEnd().split("\n");
    expect(answers.map((line) => (JSON.parse(line) as { callNumber: string }).callNumber)).toEqual(numbers);
    expect(place.mostAtOnce()).toBe(4);
  });

  test("need no reader to the end: one that leaves ends it quietly", async () => {
    const { url, numbers } = await world();
    const asked = await shell(
      `yes ${numbers[0]} | callnumber inspect - --json --coordinator ${url} | head -n 200 | wc -l`,
    );
    expect(asked.stdout.trim()).toBe("200");
    expect(asked.stderr).toBe("");
  });

  test("end with the reason when the coordinator goes away", async () => {
    const input = "2VznWE2i\n".repeat(100);
    expect(await callnumber(["inspect", "-", "--coordinator", NOBODY], { input })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^callnumber: no coordinator answers.*coordinator_unreachable\)\n$/s),
    });
  });

  test("that have no end are refused", async () => {
    const asked = await callnumber(["inspect", "-", "--coordinator", NOBODY], { input: "x".repeat(3_000_000) });
    expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining("line 1 of standard input has no end") });
  });
});
