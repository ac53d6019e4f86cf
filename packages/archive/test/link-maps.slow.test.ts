/** Each generated map, served by the real nginx and the real Apache as its first lines say. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { findApache } from "../../../test/deploy/real-apache.js";
import { findNginx } from "../../../test/deploy/real-nginx.js";
import { freePort, launch } from "../../../test/processes/server-process.js";
import { publicInboxLinks } from "../src/links/by-message-id.js";
import { type MapKind, mapOf } from "../src/links/maps.js";
import { addLinks, resolveOldLink, storedLinks } from "../src/links/old-links.js";
import { CALLNUMBER_ARCHIVE, temporaryDirectory } from "./importing.js";
import { archiveOf, filesOf, pipermailPage } from "./old-archives.js";

const [nginx, apache] = await Promise.all([findNginx(), findApache()]);

/** Two call numbers that differ by case alone, as their old URLs do. */
const [A, B, C] = ["009NKUO8", "009nkuo8", "2VznWE2i"];
const DIFFERENT_CASE = [
  { url: "/pipermail/garden/2005-January/000123.html", callNumber: A },
  { url: "/old/AbC", callNumber: A },
  { url: "/old/aBc", callNumber: B },
  { url: "/cgi?id=AbC", callNumber: A },
  { url: "/cgi?id=aBc", callNumber: B },
  { url: "/cgi", callNumber: C },
];
/** What a Message-ID may have, and a configuration must not take for its own. */
const HOSTILE_IDS = [
  "000901c4f3$e0b0$@Mail.example.org",
  "a/b@example.org",
  'a"; return 200 "x@example.org',
  "a\\@example.org",
  "a\\t@example.org",
  "$uri@example.org",
  "${callnumber_dollar}@example.org",
  "a{b}c;#d@example.org",
  "a%41%25b@example.org",
  "a?b=c#d@example.org",
  "x~^(.*)$@example.org",
  "a\\1.*[@example.org",
  "%{REQUEST_URI}${callnumber-links:x}@example.org",
  "a|b'c`d^e@example.org",
  "über|😀@example.org",
  "include@example.org",
  "x".repeat(800),
];

function mapFile(database: Database, kind: MapKind, base = ""): { text: string; leftOut: string[] } {
  const leftOut: string[] = [];
  const pieces = mapOf(
    kind,
    storedLinks(database),
    (callNumber) => `${base}/message/${callNumber}`,
    (line) => leftOut.push(line),
  );
  return { text: [...pieces].join(""), leftOut };
}

/** Where a request is redirected to, or its status. The path is sent as it is. */
async function answerOf(port: number, path: string): Promise<string> {
  const sent = request({ host: "127.0.0.1", port, path, headers: { host: "lists.example.org" } }).end();
  const [response] = await once(sent, "response");
  response.resume();
  if (response.statusCode !== 308) return String(response.statusCode);
  return response.headers.location.replace(/^http:\/\/lists\.example\.org(?::\d+)?/, "");
}

async function isListening(port: number): Promise<void> {
  const socket = connect({ host: "127.0.0.1", port });
  await once(socket, "connect");
  socket.destroy();
}

/** Starts nginx with the map and the line that its head shows. */
async function servedByNginx(map: string): Promise<number> {
  if (typeof nginx === "string") throw new Error(nginx);
  const folder = await temporaryDirectory();
  const port = await freePort();
  writeFileSync(join(folder, "links.conf"), map, "latin1");
  const line = /^# {3}(if .*)$/m.exec(map)?.[1];
  const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const server = `server { listen 127.0.0.1:${port}; ${line} location / { return 404; } }`;
  const http = `http { access_log off; ${places.join(" ")} include links.conf; ${server} }`;
  const head = `daemon off; master_process off; pid ${folder}/pid; error_log stderr; events { }`;
  writeFileSync(join(folder, "nginx.conf"), `${head}\n${http}\n`);
  const words = ["-e", "stderr", "-p", folder, "-c", join(folder, "nginx.conf")];
  const running = await launch({ ...nginx, words }, () => isListening(port));
  onTestFinished(() => running.kill("SIGTERM"));
  expect(running.log()).toBe("");
  return port;
}

/** Starts Apache with the map, as text or as a DBM file, and the lines that its head shows. */
async function servedByApache(map: string, isDbm: boolean): Promise<number> {
  if (typeof apache === "string") throw new Error(apache);
  const folder = await temporaryDirectory();
  const port = await freePort();
  const [text, dbm] = [join(folder, "old-links.txt"), join(folder, "old-links.dbm")];
  writeFileSync(text, map, "latin1");
  const made = spawnSync(apache.httxt2dbm, ["-i", text, "-o", dbm], { env: { ...process.env, ...apache.environment } });
  expect(made.status).toBe(0);
  const lines = [...map.matchAll(/^# {3}([A-Z].*)$/gm)].map(([, line]) => line).join("\n");
  mkdirSync(join(folder, "htdocs"));
  const modules = ["mpm_event", "authz_core", "rewrite"];
  const configuration = `ServerRoot ${folder}
ServerName lists.example.org
Listen 127.0.0.1:${port}
PidFile ${folder}/pid
ErrorLog ${folder}/log
DefaultRuntimeDir ${folder}
Mutex file:${folder}
${modules.map((name) => `LoadModule ${name}_module ${apache.modules}/mod_${name}.so`).join("\n")}
DocumentRoot ${folder}/htdocs
<VirtualHost *:${port}>
${lines.replace('"txt:/etc/apache2/old-links.txt"', isDbm ? `"dbm:${dbm}"` : `"txt:${text}"`)}
</VirtualHost>
`;
  writeFileSync(join(folder, "httpd.conf"), configuration);
  const words = ["-X", "-d", folder, "-f", join(folder, "httpd.conf")];
  const running = await launch({ ...apache, words }, () => isListening(port));
  onTestFinished(() => running.kill("SIGTERM"));
  return port;
}

const SERVERS = [
  ["nginx", "nginx", nginx, servedByNginx],
  ["Apache, with the text", "apache", apache, (map: string) => servedByApache(map, false)],
  ["Apache, with a DBM file", "apache", apache, (map: string) => servedByApache(map, true)],
] as const;

test.for(SERVERS)(
  "%s redirects each old URL as the reader does, by its case",
  async ([, kind, found, served], { skip }) => {
    if (typeof found === "string") return skip(found);
    const database = archiveOf([A, B, C].map((callNumber) => ({ callNumber })));
    addLinks(database, DIFFERENT_CASE, () => {});
    const port = await served(mapFile(database, kind).text);
    const urls = [
      ...DIFFERENT_CASE.map(({ url }) => url),
      ...DIFFERENT_CASE.map(({ url }) => url.toUpperCase()),
      "/pipermail/garden/2005-January/000123.html/",
      "/pipermail/%67arden/2005-january/000123.html",
      "/pipermail/garden//2005-January/000123.html?utm_source=x",
      "/old/abc",
      "/old/AbC/x",
      "/old/AbC%09",
      "/cgi?id=abc",
      "/cgi?",
      "/",
      "/nothing%7c",
    ];
    for (const url of urls) {
      const callNumber = resolveOldLink(database, url);
      expect([url, await answerOf(port, url)]).toEqual([
        url,
        callNumber === undefined ? "404" : `/message/${callNumber}`,
      ]);
    }
  },
);

test.each(SERVERS)(
  "%s redirects hostile Message-IDs, and takes none of them for its configuration",
  async (_, kind, found, served) => {
    expect.hasAssertions();
    if (typeof found === "string") return expect(found).toBe("");
    const messages = HOSTILE_IDS.map((id, index) => ({
      callNumber: String(index).padStart(8, "0"),
      messageId: `<${id}>`,
    }));
    const refused = ["a\nb@example.org", "a\u0001b@example.org", "../../etc/passwd", "x".repeat(901)];
    const unusable = refused.map((id, index) => ({ callNumber: String(index).padStart(8, "A"), messageId: `<${id}>` }));
    const database = archiveOf([...messages, ...unusable]);
    const added = addLinks(database, publicInboxLinks(database, { archive: "", path: "", url: "/garden/" }), () => {});
    expect(added).toEqual({ added: messages.length, alreadyThere: 0, rejected: unusable.length });
    const { text, leftOut } = mapFile(database, kind, "https://new.example.org/lists");
    expect(leftOut).toEqual([]);
    const port = await served(text);
    for (const { callNumber, messageId } of messages) {
      const url = `/garden/${encodeURIComponent(messageId.slice(1, -1))}/`;
      expect([url, await answerOf(port, url)]).toEqual([url, `https://new.example.org/lists/message/${callNumber}`]);
      expect(await answerOf(port, `/garden/${encodeURIComponent(`x${messageId}`)}/`)).toBe("404");
    }
  },
);

test("keys that differ by case alone and do not fit a line of nginx are left out by name, and it still starts", async ({
  skip,
}) => {
  if (typeof nginx === "string") return skip(nginx);
  const urls = Array.from({ length: 9 }, (_, index) => `/x/${"a".repeat(index)}A${"a".repeat(500 - index)}`);
  const database = archiveOf([{ callNumber: A }, { callNumber: B }]);
  addLinks(database, [...urls.map((url) => ({ url, callNumber: A })), { url: "/y", callNumber: B }], () => {});
  const { text, leftOut } = mapFile(database, "nginx");
  expect(leftOut).toHaveLength(2);
  const port = await servedByNginx(text);
  const answers = await Promise.all([...urls, "/y"].map((url) => answerOf(port, url)));
  expect(answers.toSorted()).toEqual([...Array(7).fill(`/message/${A}`), `/message/${B}`, "404", "404"].toSorted());
});

test("the map as JSON has each URL in the form of the table, and none is an empty object", () => {
  const database = archiveOf([{ callNumber: A }, { callNumber: B }]);
  expect(mapFile(database, "json").text).toBe("{}\n");
  addLinks(
    database,
    [
      { url: "/a/ü/", callNumber: A },
      { url: "/a/Ü/", callNumber: B },
    ],
    () => {},
  );
  const expected = {
    "/a/%C3%9C": "https://new.example.org/message/009nkuo8",
    "/a/%C3%BC": "https://new.example.org/message/009NKUO8",
  };
  expect(JSON.parse(mapFile(database, "json", "https://new.example.org").text)).toEqual(expected);
  expect(mapFile(database, "list").text).toBe(`/a/%C3%9C ${B}\n/a/%C3%BC ${A}\n`);
});

test("the command adds links, refuses others by name with status 1, lists them, and writes a map to a pipe", async () => {
  const page = pipermailPage("<1@example.org>");
  const directory = await filesOf({
    "garden/2005-January.txt": "",
    "garden/2005-January/000123.html": page,
    "garden/2005q1/000001.html": "",
  });
  // The source of a message in the archive's directory is named from there.
  const source = join("garden", "2005-January.txt");
  archiveOf([{ callNumber: A, messageId: "<1@example.org>", source }, { callNumber: B }], join(directory, "mail.db"));
  writeFileSync(join(directory, "links.csv"), `/pipermail/garden/2005-January/000123.html,${B}\n/x,zzzzzzzz\n`);
  const links = (...words: readonly string[]) => {
    const command = [CALLNUMBER_ARCHIVE, "links", ...words, "--archive", "mail.db"];
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: directory, encoding: "utf8" });
    return [status, stdout.trim(), stderr.trim()];
  };
  const pipermail = ["pipermail", "garden", "--url", "https://old.example.org/pipermail/garden/"];
  const refused = "rejected: 2005q1: the archive has no message of its file: import it first. Nothing of it is linked";
  expect(links(...pipermail)).toEqual([1, "1 link added, 0 already there, 1 rejected", refused]);
  expect(links(...pipermail)).toEqual([1, "0 links added, 1 already there, 1 rejected", refused]);
  const others = `rejected: /x: the archive has no message zzzzzzzz\nrejected: /pipermail/garden/2005-January/000123.html leads to ${A} already, not to ${B}`;
  expect(links("csv", "links.csv")).toEqual([1, "0 links added, 0 already there, 2 rejected", others]);
  expect(links("list")).toEqual([0, `/pipermail/garden/2005-January/000123.html ${A}`, ""]);
  expect(links("json", "--base", "https://new.example.org/")[1]).toContain(`: "https://new.example.org/message/${A}"`);
  expect(links("csv", "missing.csv")).toEqual([
    1,
    "",
    expect.stringMatching(/source_unusable: The old archive can't be read: ENOENT/),
  ]);
  const wrong = [
    ["what"],
    [],
    ["csv"],
    ["list", "x"],
    ["list", "--url", "/"],
    ["hyperkitty"],
    ["hyperkitty", "--url", "/x"],
    ["json", "--base", "x$y"],
  ];
  for (const words of wrong) expect([words, links(...words)[0]]).toEqual([words, 2]);
  rmSync(join(directory, "mail.db"));
  expect(links("list")).toEqual([1, "", expect.stringMatching(/There is no archive at .*mail\.db/)]);
  expect(existsSync(join(directory, "mail.db"))).toBe(false);
});
