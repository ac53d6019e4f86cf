/** The code of docs/how-to/integrate.md, compiled and run as it is shown, against a real coordinator and a real PostgreSQL. */
import { execFile } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { callnumber, folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { serverForFile, startPostgres } from "./sql-servers.js";

const COUNT = 10_000;
/** Taken before, so that the run ends in the middle of the inserts. */
const BEFORE = "await client.take(10_000);";
const BATCH = `Array.from({ length: ${COUNT} }, (_, index) => "message " + index)`;
const READY = "await client.ready(batch.length);";

const read = (name: string) => readFileSync(join(REPOSITORY, "docs", "how-to", name), "utf8");
const blocks = [...read("integrate.md").matchAll(/^```ts (\S+)\n(.*?)^```$/gms)];
const [, table = ""] = /^```sql postgres:table\n(.*?)^```$/ms.exec(read("store-call-numbers.md")) ?? [];

const server = serverForFile(startPostgres);
let url: string;
let stopCoordinator: () => Promise<unknown>;
/** Runs a module in the folder with the blocks. Resolves to what it prints. @throws Error with what it wrote when it fails. */
let run: (code: string) => Promise<string>;

beforeEach(async () => {
  await server().run("CREATE DATABASE archive");
  onTestFinished(async () => void (await server().run("DROP DATABASE archive WITH (FORCE)")));
  await server().run(table, "archive");
  const coordinator = await serve("memory:");
  url = coordinator.url;
  stopCoordinator = coordinator.stop;

  const folder = await folderForTest();
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  for (const [, name = "", code = ""] of blocks) {
    writeFileSync(join(folder, name), code.replace("holder:", `coordinator: "${url}", holder:`));
  }
  const [[socketFolder = ""] = []] = await server().run("SHOW unix_socket_directories");
  const env = { ...process.env, PGHOST: socketFolder, PGUSER: "postgres", PGDATABASE: "archive" };
  const node = async (...parameters: string[]) => {
    const running = promisify(execFile)(process.execPath, parameters, { cwd: folder, env });
    return await running.then(
      ({ stdout }) => stdout,
      ({ stdout, stderr }: { stdout: string; stderr: string }) => Promise.reject(new Error(`${stdout}${stderr}`)),
    );
  };
  const tsc = join(REPOSITORY, "node_modules", "typescript", "bin", "tsc");
  // The types of the libraries name databases that are not installed.
  const flags = "--ignoreConfig --strict --skipLibCheck --module nodenext --target es2022 --types node";
  await node(tsc, ...flags.split(" "), ...blocks.map(([, name = ""]) => name));
  run = (code) => node("--input-type=module", "-e", `${code}\nprocess.exit();`);
});

/** Asserts that each message is stored once, and by a call number of its own. */
async function expectStored(): Promise<void> {
  const rows = await server().run("SELECT call_number, message FROM messages", "archive");
  expect(new Set(rows.map(([, message]) => message)).size).toBe(COUNT);
  const numbers = new Set(rows.map(([callNumber]) => callNumber as string));
  expect([rows.length, numbers.size]).toEqual([COUNT, COUNT]);
  const runs = new Set([...numbers].map((callNumber) => decodeCallNumber(callNumber).run));
  expect(runs.size).toBe(2);
}

const storing = (name: string, call: string) => `
  import { client } from "./client.js";
  import { store } from "./${name}.js";
  ${BEFORE}
  const batch = ${BATCH};
  await ${call};
  await client.close();`;

const EACH = "Promise.all(batch.map(store))";
test.each([
  ["drizzle", "store(batch)"],
  ["kysely", EACH],
  ["typeorm", EACH],
])("%s stores 10,000 messages at the same time, each once", async (name, call) => {
  await run(storing(name, call));
  await expectStored();
});

test("drizzle fails with no_run_available in the middle of a batch without ready()", async () => {
  const withoutReady = `
    import { readFileSync, writeFileSync } from "node:fs";
    writeFileSync("drizzle.js", readFileSync("drizzle.js", "utf8").replace("${READY}", ""));`;
  await run(withoutReady);
  await expect(run(storing("drizzle", "store(batch)"))).rejects.toThrow(/no_run_available/);
});

test("drizzle and typeorm declare the column as it is in the table", async () => {
  const printed = await run(`
    import { messages } from "./drizzle.js";
    import { messages as repository } from "./typeorm.js";
    console.log(messages.callNumber.getSQLType());
    const { upQueries } = await repository.manager.connection.driver.createSchemaBuilder().log();
    for (const { query } of upQueries) console.log(query);`);
  // It would change nothing of the column.
  const dropped = 'ALTER TABLE "messages" DROP CONSTRAINT "written_like_a_call_number"';
  expect(printed).toBe(`text COLLATE "C"\n${dropped}\n`);
});

test("typeorm overwrites a message with save()", async () => {
  const printed = await run(`
    import { client } from "./client.js";
    import { messages, store } from "./typeorm.js";
    await store("first");
    const [{ call_number }] = await messages.find();
    await messages.save({ call_number, message: "saved" });
    console.log((await messages.find())[0].message);
    await client.close();`);
  expect(printed).toBe("saved\n");
});

test("fastify stores 10,000 messages at the same time, each once, and closes its client", async () => {
  const printed = await run(`
    import fastify from "fastify";
    import { callNumbers } from "./fastify.js";
    const app = fastify();
    await app.register(callNumbers, { coordinator: "${url}", holder: { name: "web" }, prefetch: false });
    const client = app.callNumbers;
    ${BEFORE}
    const post = (message) => app.inject({ method: "POST", url: "/messages", payload: { message } });
    const answers = await Promise.all((${BATCH}).map(post));
    console.log(new Set(answers.map(({ statusCode }) => statusCode)));
    console.log((await app.inject("/ready")).statusCode);
    await app.close();`);
  expect(printed).toBe("Set(1) { 200 }\n200\n");
  await expectStored();
  const { stdout } = await callnumber(["runs", "--coordinator", url, "--json"]);
  const leases = JSON.parse(stdout) as { progress: { state: string } | null }[];
  expect(leases.map(({ progress }) => progress?.state).sort()).toEqual(["closed", "exhausted"]);
});

test("fastify answers 500 to a readiness probe while no number can be made", async () => {
  await stopCoordinator();
  const printed = await run(`
    import fastify from "fastify";
    import { callNumbers } from "./fastify.js";
    const app = fastify();
    await app.register(callNumbers, { coordinator: "${url}", holder: { name: "web" }, waitTimeoutMs: 50 });
    const answer = await app.inject("/ready");
    console.log(answer.statusCode, answer.json().code);
    await app.close();`);
  expect(printed).toMatch(/^500 (coordinator_unreachable|wait_timeout)\n$/);
});
