/** Commands that act on a store, typed without one while a coordinator serves another store than the default one. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { callnumber, folderForTest, serve } from "../../../test/processes/command.js";
import { freePort } from "../../../test/processes/server-process.js";
import {
  defaultCoordinatorAt,
  done,
  embeddedStore,
  expectFailure,
  httpServer,
  jsonOf,
  NOWHERE,
} from "./commands-for-test.js";

let home: string;
let defaultStore: string;

beforeEach(async () => {
  home = await folderForTest();
  defaultStore = join(home, "callnumber", "store.db");
  const env = { XDG_STATE_HOME: home };
  expect((await callnumber(["init", "--store", `sqlite:${defaultStore}`], { env })).code).toBe(0);
});

const ACTING: readonly (readonly string[])[] = [
  ["backup", "--to", "backup.db"],
  ["retention", "--days", "30"],
  ["recover", "--apply"],
  ["advance-version", "--apply"],
  ["init", "--namespace", "lists"],
  ["move", "--to", "sqlite:moved.db", "--apply"],
];

test.each(ACTING)("%s acts on no store while the coordinator serves another one", async (name, ...words) => {
  const store = await embeddedStore();
  const { url } = await serve(store, "--create");
  const before = readFileSync(defaultStore);
  const env = { XDG_STATE_HOME: home, CALLNUMBER_COORDINATOR: url };
  const { stderr } = await expectFailure([name as string, ...words], 2, "serves another store", env);
  expect(stderr).toContain(`\`callnumber ${name} --store ${store}`);
  expect(stderr).toContain(`\`callnumber ${name} --store sqlite:${defaultStore}`);
  expect(stderr.split(` ${words.join(" ")}\``)).toHaveLength(3);
  expect(readFileSync(defaultStore).equals(before)).toBe(true);
  expect([existsSync("backup.db"), existsSync("moved.db")]).toEqual([false, false]);
});

test.each(ACTING)("%s acts on no store while a named coordinator does not answer", async (name, ...words) => {
  const env = { XDG_STATE_HOME: home, CALLNUMBER_COORDINATOR: NOWHERE };
  const message = new RegExp(`not known which store.*\`callnumber ${name} --store \\S+/store.db .*unreachable`);
  await expectFailure([name as string, ...words], 1, message, env);
});

test("the printed command acts on the store that is served, and the environment may name it", async () => {
  const store = await embeddedStore();
  // Which backup does not take.
  const { url } = await serve(store, "--create", "--checkpoint-dir", join(home, "checkpoints"));
  const to = join(home, "backup.db");
  const env = { XDG_STATE_HOME: home, CALLNUMBER_COORDINATOR: url };
  const { stderr } = await expectFailure(["backup", "--to", to], 2, "another store", env);
  const [, printed = ""] = /For that one: `callnumber ([^`]+)`/.exec(stderr) ?? [];
  expect((await callnumber(printed.split(" "), { env })).stdout).toMatch(
    new RegExp(`^Copied ${store}: namespace main, store id \\S+\n${to}, `),
  );
  const again = await callnumber(["backup", "--to", `${to}.2`, "--json"], { env: { ...env, CALLNUMBER_STORE: store } });
  const id = expect.stringMatching(/^[0-9a-f-]{36}\./);
  expect(JSON.parse(again.stdout)).toMatchObject({ store, namespaces: [{ namespace: "main", storeId: id }] });
});

test("a backup of the default store is made while its coordinator runs", async () => {
  const { url } = await serve(`sqlite:${defaultStore}`);
  const env = { XDG_STATE_HOME: home, CALLNUMBER_COORDINATOR: url };
  const { stdout } = await callnumber(["backup", "--to", join(home, "backup.db")], { env });
  expect(stdout).toContain(`Copied sqlite:${defaultStore}: namespace main, store id`);
});

test("without a named coordinator, the default store is taken only when nothing listens", async () => {
  const env = { XDG_STATE_HOME: home, CALLNUMBER_COORDINATOR: undefined };
  const retentionWhere = async (url: string) => {
    defaultCoordinatorAt(url);
    return await callnumber(["retention"], { env });
  };
  const { stdout } = await retentionWhere(`http://127.0.0.1:${await freePort()}`);
  expect(stdout).toMatch(new RegExp(`^namespace main of sqlite:${defaultStore}, store id \\S+\n`));
  const answers = [
    await httpServer((request) => request.socket.destroy()),
    await httpServer((_, response) => response.writeHead(401).end('{"code":"unauthorized","message":"no token"}')),
    await httpServer((_, response) => response.writeHead(404).end("<html>")),
  ];
  for (const url of answers) {
    const { code, stderr } = await retentionWhere(url);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("not known which store is served") });
  }
});

test("init makes no default store without --create", async () => {
  defaultCoordinatorAt(`http://127.0.0.1:${await freePort()}`);
  const env = { XDG_STATE_HOME: "/nonexistent/state", CALLNUMBER_COORDINATOR: undefined };
  const { code, stderr } = await callnumber(["init"], { env });
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("store_not_found") });
});

test("a backup into a missing directory names the directory, and not the store", async () => {
  const to = join(home, "nodir", "backup.db");
  const words = ["backup", "--store", `sqlite:${defaultStore}`, "--to", to];
  const { stderr } = await expectFailure(words, 2, `there is no directory ${join(home, "nodir")}`);
  expect(stderr).not.toContain("store");
});

test.each([
  ["recover", "1", []],
  ["retention", "1", []],
  ["advance-version", "1073741000", ["--force-early"]],
])("%s names store and store id in its first line and in JSON", async (name, firstRun, more) => {
  const store = `sqlite:${join(home, "other.db")}`;
  const { storeId } = await jsonOf<{ storeId: string }>("init", "--store", store, "--first-run", firstRun);
  const command = [name, ...more, "--store", store];
  const [firstLine] = (await done(...command)).stdout.split("\n");
  expect(firstLine).toBe(`namespace main of ${store}, store id ${storeId}`);
  expect(await jsonOf(...command)).toMatchObject({ store, storeId });
});
