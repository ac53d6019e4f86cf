/** The application as its README runs it: with a real coordinator and a real PostgreSQL. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { serveProcess } from "../../../test/processes/command.js";
import { freePort, launch, outputOf } from "../../../test/processes/server-process.js";
import { serverForFile, startPostgres } from "../../../test/storing/sql-servers.js";

const APP = fileURLToPath(new URL("../app.mjs", import.meta.url));
const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const postgres = serverForFile(startPostgres);

async function startApp(coordinator: string, database: string) {
  const port = await freePort();
  const [[folder = ""] = []] = await postgres().run("SHOW unix_socket_directories");
  const where = { PGHOST: folder, PGUSER: "postgres", PGDATABASE: database };
  const environment = { ...where, CALLNUMBER_COORDINATOR: coordinator, PORT: String(port) };
  const url = `http://localhost:${port}`;
  const app = await launch({ program: process.execPath, words: [APP], environment }, () => fetch(url));
  onTestFinished(() => app.kill());
  return { ...app, url };
}

const post = (url: string, body: string) => fetch(`${url}/messages`, { method: "POST", body });

test("the application stores a message once, and shows it as text at its number", async () => {
  await postgres().run("CREATE DATABASE one");
  const { url, kill } = await startApp((await serveProcess("memory:")).url, "one");
  const html = "<script>alert(1)</script> grüße";
  const posted = await post(url, html);
  const number = (await posted.text()).trim();
  expect([posted.status, posted.headers.get("location")]).toEqual([201, `/message/${number}`]);
  const shown = await fetch(`${url}/message/${number}`);
  expect(await shown.text()).toBe(html);
  expect(shown.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(shown.headers.get("x-content-type-options")).toBe("nosniff");
  const again = await post(url, html);
  expect([again.status, await again.text()]).toEqual([200, `${number}\n`]);
  const others = await Promise.all(Array.from({ length: 8 }, async () => (await post(url, "another")).text()));
  expect(new Set(others).size).toBe(1);
  expect(await postgres().run("SELECT count(*) FROM messages", "one")).toEqual([["2"]]);
  const refused = ["zzzzzzzz", "2VznWE2i"].map(async (wrong) => (await fetch(`${url}/message/${wrong}`)).status);
  expect(await Promise.all(refused)).toEqual([404, 404]);
  expect((await post(url, "")).status).toBe(400);
  expect((await post(url, "x".repeat(1024 * 1024 + 1))).status).toBe(413);

  const commands = /```sh\n(number=[^`]*)```/.exec(README)?.[1] ?? "";
  const script = commands.replaceAll("http://localhost:3000", url);
  expect(await outputOf({ program: "sh", words: ["-c", script] })).toBe("The plums are ripe.");
  await kill("SIGTERM");
});

test("the application rejects another store, and a number that is stored already, and changes nothing", async () => {
  await postgres().run("CREATE DATABASE two");
  const [one, other] = [await serveProcess("memory:"), await serveProcess("memory:")];
  const app = await startApp(one.url, "two");
  for (const text of ["first", "second"]) expect((await post(app.url, text)).status).toBe(201);
  await app.kill("SIGTERM");
  const rows = await postgres().run("SELECT * FROM messages ORDER BY 1", "two");
  const elsewhere = await startApp(other.url, "two");
  expect((await post(elsewhere.url, "third")).status).toBe(500);
  await elsewhere.kill("SIGTERM");

  // A new store issues the numbers of the first again, as a copy of it would.
  await postgres().run("DELETE FROM facts", "two");
  const repeating = await startApp((await serveProcess("memory:")).url, "two");
  expect((await post(repeating.url, "third")).status).toBe(500);
  expect(await postgres().run("SELECT * FROM messages ORDER BY 1", "two")).toEqual(rows);
});
