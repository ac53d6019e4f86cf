/** The links of older archives: each kind, what does not match, and where an old URL leads. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { csvLinks, hyperkittyHash, hyperkittyLinks, publicInboxLinks } from "../src/links/by-message-id.js";
import { addLinks, canonicalUrl, type Found, resolveOldLink, storedLinks } from "../src/links/old-links.js";
import { mhonarcLinks, pipermailLinks } from "../src/links/pages.js";
import { addCopy, archiveOf, filesOf, mhonarcPage, pipermailPage, type Stored } from "./old-archives.js";

const [A, B, C] = ["009NKUO8", "009nkuo8", "2VznWE2i"];
/** Elsewhere, so that sources keep their whole paths. */
const archive = "/archive/mail.db";
const URL = "/pipermail/garden/";

/** The links alone, by URL. */
function linksOf(found: Iterable<Found>): Record<string, string> {
  return Object.fromEntries([...found].flatMap((one) => ("url" in one ? [[one.url, one.callNumber]] : [])));
}

/** What a program would print of the rest. */
function linesOf(found: Iterable<Found>): string[] {
  return [...found].flatMap((one) => ("url" in one ? [] : ["problem" in one ? one.problem : one.note]));
}

/** Three messages of one month. */
function month(source: string, given: readonly Partial<Stored>[] = [{}, {}, {}]) {
  const numbers = [A, B, C];
  return given.map((fields, index) => {
    return {
      callNumber: numbers[index] ?? "",
      messageId: `<${index + 1}@example.org>`,
      source,
      number: index + 1,
      ...fields,
    };
  });
}

test.each([
  [
    "https://lists.example.org/pipermail/garden/2005-January/000123.html#top",
    "/pipermail/garden/2005-January/000123.html",
  ],
  ["//garden//a/", "/garden/a"],
  ["/", "/"],
  ["/garden/%61%40b%2fc%C3%BC/", "/garden/a@b/c%C3%BC"],
  ["/garden/ü", "/garden/%C3%BC"],
  ["/cgi?x=1&y=%61", "/cgi?x=1&y=%61"],
  ["/cgi?", "/cgi"],
  ['/a"b<c>|d', "/a%22b%3Cc%3E%7Cd"],
  ["/Garden/100%", "/Garden/100%25"],
])("the URL %s has the form %s", (given, expected) => {
  expect(canonicalUrl(given)).toBe(expected);
  expect(canonicalUrl(expected)).toBe(expected);
});

test.each([
  ["no path", "https://lists.example.org"],
  ["no slash", "garden/1"],
  ["dot segments", "/garden/%2e%2e/etc"],
  ["a line break", "/garden/a%0Ab"],
  ["a NUL", "/garden/a\0b"],
  ["900 bytes", `/${"x".repeat(900)}`],
  ["escapes beyond 900 bytes", `/${"ü".repeat(300)}`],
])("a URL with %s can't be a link", (_, url) => {
  expect(canonicalUrl(url)).toBeUndefined();
});

test("a link is added once, and never changed", () => {
  const database = archiveOf([{ callNumber: A }, { callNumber: B }]);
  const lines: string[] = [];
  const add = (...found: Found[]) => addLinks(database, found, (line) => lines.push(line));
  expect(add({ url: "/x/1.html", callNumber: A }, { url: "/X/1.html", callNumber: B })).toEqual({
    added: 2,
    alreadyThere: 0,
    rejected: 0,
  });
  expect(add({ url: "https://old.example.org/x/%31.html/", callNumber: A })).toEqual({
    added: 0,
    alreadyThere: 1,
    rejected: 0,
  });
  expect(add({ url: "/x/1.html", callNumber: B }, { url: "/x/2.html", callNumber: B })).toEqual({
    added: 1,
    alreadyThere: 0,
    rejected: 1,
  });
  expect(add({ url: "/x/a%0d%0ab", callNumber: B })).toMatchObject({ rejected: 1 });
  expect(lines).toEqual([
    `rejected: /x/1.html leads to ${A} already, not to ${B}`,
    `rejected: /x/a%0d%0ab of ${B} can't be a link`,
  ]);
  expect([...storedLinks(database)].map(({ url, callNumber }) => [url, callNumber])).toEqual([
    ["/X/1.html", B],
    ["/x/1.html", A],
    ["/x/2.html", B],
  ]);
});

test("an old URL leads to its message with its query, without it, and with other escapes; another case leads nowhere", () => {
  const database = archiveOf([{ callNumber: A }, { callNumber: B }]);
  const links = [
    { url: "/cgi", callNumber: A },
    { url: "/cgi?id=1", callNumber: B },
  ];
  addLinks(database, links, () => {});
  const resolved = ["/cgi", "/cgi?id=1", "/cgi?id=2", "/%63gi/", "/CGI", "/cgi/x", "cgi", "/cgi/../cgi"].map((url) =>
    resolveOldLink(database, url),
  );
  expect(resolved).toEqual([A, B, A, A, undefined, undefined, undefined, undefined]);
});

test("the n-th page of Pipermail leads to the n-th message of the month's file, also where numbers are left out", async () => {
  const directory = await filesOf({
    "2005-January/000009.html": "",
    "2005-January/000123.html": "",
    "2005-January/1000000.html": "",
    "2005-January/thread.html": "",
    "2005-January.txt": "",
    "attachments/20050101/x.bin": "",
    "index.html": "",
  });
  const database = archiveOf(month(join(directory, "2005-January.txt")));
  const found = [...pipermailLinks(database, { archive, path: directory, url: URL })];
  expect(linesOf(found)).toEqual([]);
  expect(linksOf(found)).toEqual({
    [`${URL}2005-January/000009.html`]: A,
    [`${URL}2005-January/000123.html`]: B,
    [`${URL}2005-January/1000000.html`]: C,
  });
});

test("a message that the archive knows as a copy has its page, too", async () => {
  const directory = await filesOf({ "2005q1/000000.html": "", "2005q1/000001.html": "" });
  const source = join(directory, "2005q1.txt.gz");
  const database = archiveOf([{ callNumber: A }, { callNumber: B, source, number: 2 }]);
  addCopy(database, { callNumber: A, source, number: 1 });
  expect(Object.values(linksOf(pipermailLinks(database, { archive, path: directory, url: URL })))).toEqual([A, B]);
});

test("the numbers of Pipermail's pages come from an index, or from --start, where the pages are gone", async () => {
  const index =
    '<LI><A HREF="000010.html">Plums</A>\n<LI><A HREF="000007.html">Pears</A><A HREF="000010.html">Plums</A><a href="000008.html">';
  const directory = await filesOf({ "2005-January/date.html": index, "2005-January.mbox": "" });
  const file = join(directory, "2005-January.mbox");
  const database = archiveOf(month(file));
  const pagesOf = (path: string, start?: number) =>
    Object.keys(linksOf(pipermailLinks(database, { archive, path, url: "/", start }))).map((url) =>
      url.slice("/2005-January/".length),
    );
  expect(pagesOf(directory)).toEqual(["000007.html", "000008.html", "000010.html"]);
  const alone = await filesOf({ "2005-January.mbox": "" });
  database.exec(`update messages set source = '${join(alone, "2005-January.mbox")}'`);
  expect(linesOf(pipermailLinks(database, { archive, path: alone, url: "/" })).join()).toContain("with --start");
  expect(pagesOf(join(alone, "2005-January.mbox"), 41)).toEqual(["000041.html", "000042.html", "000043.html"]);
});

const pages = (...ids: string[]) =>
  Object.fromEntries(ids.map((id, index) => [`m/00000${index}.html`, id === "" ? "" : pipermailPage(id)]));

test.each([
  [
    "a page more",
    pages("<1@example.org>", "<2@example.org>", "<gone@example.org>", "<3@example.org>"),
    [{}, {}, {}],
    /4 pages and 3 messages; without a counterpart: 000002\.html/,
  ],
  [
    "a message more",
    pages("<1@example.org>", "<3@example.org>"),
    [{}, {}, {}],
    /2 pages and 3 messages; without a counterpart: message 2\./,
  ],
  ["another count, and no Message-IDs", pages("", ""), [{}, {}, {}], /2 pages and 3 messages\. Nothing/],
  [
    "another order",
    pages("<2@example.org>", "<1@example.org>", "<3@example.org>"),
    [{}, {}, {}],
    /000000\.html is the page of <2@example\.org>, but message 1 is <1@example\.org>/,
  ],
  [
    "a message that is not stored",
    pages("", "", ""),
    [{}, {}, { number: 4 }],
    /message 3 of its file is not in the archive/,
  ],
  [
    "a place with two messages",
    pages("", "", ""),
    [{}, { number: 1 }, { number: 2 }],
    /or twice because the file has changed/,
  ],
  ["no message", pages("", "", ""), [], /no message of its file: import it first/],
])("a month with %s is rejected whole, and what is wrong is named", async (_, files, given, problem) => {
  const directory = await filesOf(files);
  const found = [
    ...pipermailLinks(archiveOf(month(join(directory, "m.txt"), given)), { archive, path: directory, url: URL }),
  ];
  expect(found).toEqual([{ problem: expect.stringMatching(problem) }]);
  expect(linesOf(found)[0]).toMatch(/^m: .*\. Nothing of it is linked$/);
});

test("pages with the Message-ID that they answer, as old releases wrote it, are linked", async () => {
  const directory = await filesOf(pages("<0@example.org>", "<1@example.org>", ""));
  const database = archiveOf(month(join(directory, "m.txt")));
  expect(linesOf(pipermailLinks(database, { archive, path: directory, url: URL }))).toEqual([]);
  const answered = ["<7@example.org>", "<8@example.org>"] as const;
  const other = await filesOf(pages(...answered));
  const answers = archiveOf(month(join(other, "m.txt"), [{ inReplyTo: answered[0] }, { inReplyTo: answered[1] }]));
  expect(linesOf(pipermailLinks(answers, { archive, path: other, url: URL }))).toEqual([]);
});

test("pages that are of the message before, or answer it, are not linked: a mailbox without its first message looks alike", async () => {
  const directory = await filesOf(pages("<0@example.org>", "<1@example.org>"));
  const chain = [{ inReplyTo: "<0@example.org>" }, { inReplyTo: "<1@example.org>" }];
  const database = archiveOf(month(join(directory, "m.txt"), chain));
  const found = [...pipermailLinks(database, { archive, path: directory, url: URL })];
  expect(found).toEqual([{ problem: expect.stringContaining("is the page of <0@example.org>") }]);
});

test("the n-th page of MHonArc leads to the n-th message; it made none of a known Message-ID", async () => {
  const fields = [{}, { messageId: "<1@example.org>" }, { messageId: "<a-b%41@example.org>" }];
  const directory = await filesOf({
    "garden.mbox": "",
    "html/msg00000.html": mhonarcPage("<1@example.org>"),
    "html/msg00001.html": mhonarcPage("<a-b%41@example.org>"),
  });
  const path = join(directory, "garden.mbox");
  const database = archiveOf(month(path, fields));
  const linked = { "/a/msg00000.html": A, "/a/msg00001.html": C };
  const withPages = { archive, path, url: "/a/", pages: join(directory, "html") };
  expect(linksOf(mhonarcLinks(database, withPages))).toEqual(linked);
  expect(linksOf(mhonarcLinks(database, { archive, path, url: "/a/" }))).toEqual(linked);
  expect(Object.keys(linksOf(mhonarcLinks(database, { archive, path, url: "/a/", start: 99_999 })))).toEqual([
    "/a/msg99999.html",
    "/a/msg100000.html",
  ]);
  database.exec(`update messages set message_id = '<c@example.org>' where call_number = '${C}'`);
  expect(linesOf(mhonarcLinks(database, withPages)).join()).toContain(
    "msg00001.html is the page of <a-b%41@example.org>",
  );
});

test("HyperKitty's hash is that of Mailman's documentation, without blanks, and of 254 characters at most", () => {
  expect(hyperkittyHash("<12345>")).toBe("RSZCG7IGPHFIRW3EMTVMMDNJMNCVCOLE");
  expect(hyperkittyHash("<87myycy5eh.fsf@uwakimon.sk.tsukuba.ac.jp>")).toBe("JJIGKPKB6CVDX6B2CUG4IHAJRIQIOUTP");
  expect(hyperkittyHash("<123\n\t45>")).toBe("RSZCG7IGPHFIRW3EMTVMMDNJMNCVCOLE");
  expect(hyperkittyHash(`<${"x".repeat(300)}>`)).toBe(hyperkittyHash("x".repeat(254)));
  expect(hyperkittyHash(`<${"x".repeat(253)}>`)).not.toBe(hyperkittyHash("x".repeat(254)));
});

test("a message of HyperKitty has a link, and a thread that of its first message", () => {
  const database = archiveOf([
    { callNumber: A, messageId: "<12345>", list: "garden.example.org" },
    { callNumber: B, messageId: "<2@example.org>", thread: "<12345>", list: "garden.example.org" },
    { callNumber: C, messageId: "<3@example.org>", list: "other.example.org" },
  ]);
  const url = "/hyperkitty/list/garden@example.org/";
  expect(linksOf(hyperkittyLinks(database, { archive: "", path: "", url, list: "garden.example.org" }))).toEqual({
    [`${url}message/RSZCG7IGPHFIRW3EMTVMMDNJMNCVCOLE/`]: A,
    [`${url}thread/RSZCG7IGPHFIRW3EMTVMMDNJMNCVCOLE/`]: A,
    [`${url}message/${hyperkittyHash("<2@example.org>")}/`]: B,
  });
  expect(Object.values(linksOf(hyperkittyLinks(database, { archive: "", path: "", url })))).toContain(C);
});

/** Of one Message-ID: the second list has it first. */
const SEVERAL = [
  { callNumber: A, messageId: "<1@example.org>", list: "other.example.org" },
  { callNumber: B, messageId: "<1@example.org>", list: "garden.example.org" },
  { callNumber: C, messageId: "<1@example.org>", list: "garden.example.org" },
];

test("a Message-ID of several messages leads to the first of its list, which is named", async () => {
  const database = archiveOf(SEVERAL);
  const garden = { archive: "", path: "", url: "/garden/", list: "garden.example.org" };
  const note = `<1@example.org> is the Message-ID of 2 messages: its links lead to the first, ${B}`;
  for (const links of [hyperkittyLinks(database, garden), publicInboxLinks(database, garden)]) {
    const found = [...links];
    expect(new Set(Object.values(linksOf(found)))).toEqual(new Set([B]));
    expect(linesOf(found)).toEqual([note]);
  }
  const csv = join(await filesOf({ "links.csv": "/x,1@example.org" }), "links.csv");
  expect([...csvLinks(database, { archive, path: csv, url: "" })]).toEqual([
    { url: "/x", callNumber: A },
    { note: expect.stringContaining(`3 messages: its links lead to the first, ${A}`) },
  ]);
  const resolved = ["/garden/1@example.org/", "/other/1@example.org/", "/r/1@example.org", "/gard/1@example.org"];
  expect(resolved.map((url) => resolveOldLink(database, url))).toEqual([B, A, A, A]);
});

test.each([
  ["/garden/1@example.org/", "<1@example.org>"],
  ["/garden/1%40example.org", "<1@example.org>"],
  ["/garden/1@example.org/raw", "<1@example.org>"],
  ["/garden/1@example.org/T/", "<1@example.org>"],
  ["/garden/1@example.org/t.mbox.gz", "<1@example.org>"],
  ["/garden/m/1@example.org/", "<1@example.org>"],
  ["/r/1@example.org/", "<1@example.org>"],
  ["/m/1@example.org.html", "<1@example.org>"],
  ["/garden/a%2Fb$c+d%25e@example.org/", "<a/b$c+d%e@example.org>"],
  ["/garden/%C3%BC@example.org/", "<ü@example.org>"],
])("the URL %s of public-inbox leads to the message %s, without a table", (url, messageId) => {
  const database = archiveOf([{ callNumber: A, messageId }]);
  expect(resolveOldLink(database, url)).toBe(A);
  expect(resolveOldLink(database, url.toUpperCase())).toBeUndefined();
  const [link] = Object.keys(linksOf(publicInboxLinks(database, { archive: "", path: "", url: "/garden/" })));
  expect(resolveOldLink(database, link ?? "")).toBe(A);
});

test("a CSV names a message by its call number or Message-ID; what it can't name is rejected by line", async () => {
  const text = [
    "\ufeffold,new\r",
    `https://old.example.org/?id=5,${A}\r`,
    `"/a,b",<2@example.org>`,
    "/c,2@example.org",
    "",
    `/d , "${B}"`,
    "/e,zzzzzzzz",
    "nothing",
  ].join("\n");
  const path = join(await filesOf({ "links.csv": text }), "links.csv");
  const database = archiveOf([{ callNumber: A }, { callNumber: B, messageId: "<2@example.org>" }]);
  const found = [...csvLinks(database, { archive, path, url: "" })];
  expect(linksOf(found)).toEqual({ "https://old.example.org/?id=5": A, "/a,b": B, "/c": B, "/d": B });
  expect(linesOf(found)).toEqual([
    "/e: the archive has no message zzzzzzzz",
    `line 8 of ${path} does not begin with a URL or a path`,
  ]);
});
