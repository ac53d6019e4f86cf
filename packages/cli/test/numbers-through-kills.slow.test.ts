/**
 * 200 numbers, each by a `curl` of its own, from a coordinator that is killed after every twentieth: none comes twice, and each life of the
 * coordinator costs one run.
 * Guarantees: G9 (docs/guarantees.md).
 */
import { once } from "node:events";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { serveProcess, shell } from "../../../test/processes/command.js";
import { done, embeddedStore, jsonOf } from "./commands-for-test.js";

const LIVES = 10;
const NUMBERS_PER_LIFE = 20;

const curl = (url: string) => `curl -fsS --retry 3 -X POST -H "Accept: text/plain" ${url}/v1/namespaces/main/numbers`;

test("200 curls get distinct numbers from a coordinator that is killed ten times, of one run for each life", async ({
  skip,
}) => {
  if ((await shell("command -v curl")).code !== 0) skip("no `curl` here");
  const store = await embeddedStore();
  await done("init", "--store", store);
  const numbers: string[] = [];
  for (let life = 1; life <= LIVES; life++) {
    const { url, child } = await serveProcess(store);
    const { code, stdout, stderr } = await shell(`set -e; for i in {1..${NUMBERS_PER_LIFE}}; do ${curl(url)}; done`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    // One more is being made while it is killed: whether or not it arrives, no later one repeats it.
    const cut = shell(curl(url).replace("--retry 3", ""));
    child.kill("SIGKILL");
    await once(child, "exit");
    numbers.push(...stdout.trimEnd().split("\n"), ...(await cut).stdout.split("\n").filter((line) => line !== ""));
  }
  expect(numbers.length).toBeGreaterThanOrEqual(LIVES * NUMBERS_PER_LIFE);
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(new Set(numbers.map((number) => decodeCallNumber(number).run)).size).toBe(LIVES);
  const { url, stop } = await serveProcess(store);
  const leases = await jsonOf<readonly { readonly runCount: number }[]>("runs", "--coordinator", url);
  expect(leases.map(({ runCount }) => runCount)).toEqual(Array.from({ length: LIVES }, () => 1));
  await stop();
});
