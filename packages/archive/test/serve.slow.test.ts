/** What the reader answers, by its addresses; and what it does not. */

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, test } from "vitest";
import { type ArchiveRow, GARDEN, rowsOf, runImporter } from "./importing.js";
import { importedArchive, numberOf, startReader, textOf, untilIndexed } from "./reading.js";

const GARDEN_LIST = "/list/garden.lists.beechstreet.example";
const SEEDS = "Seed swap this Saturday at the green shed";

test("the sample is read as lists, months, threads and messages, to the attachment and the raw message", async () => {
  const { archive } = await importedArchive(GARDEN);
  const { url } = await startReader(archive);
  const number = numberOf(archive, SEEDS);
  expect(await textOf(`${url}/`)).toMatch(
    /garden\.lists\.beechstreet\.example<\/a> <span>30 messages<[^]*Apr 2025 – Jun 2025/,
  );
  expect(await textOf(url + GARDEN_LIST)).toMatch(/2025-04">Apr <span>\d+<[^]*2025-06">Jun <span>/);
  const month = await textOf(`${url}${GARDEN_LIST}/2025-04`);
  expect(month).toMatch(
    new RegExp(
      `class="d0">\\s*<a href="/message/${number}">${SEEDS}</a>[^]*?class="d1">\\s*<a href="/message/\\w{8}">Tom Whitfield<`,
    ),
  );
  const page = await textOf(`${url}/message/${number}`);
  expect(page).toContain("Tue, Apr 22, 2025, 09:12 +0200");
  expect(page).toContain("Priya Nair &lt;priya@be…&gt;");
  expect(page).not.toContain("priya@beechstreet");
  expect(page).toContain(`"/message/${number}" aria-current="page"`);
  expect(page).toMatch(/Good morning, neighbors!\n\nThe seed swap/);
  const file = await fetch(`${url}/message/${number}/attachments/1`);
  expect(await file.text()).toMatch(/^BEGIN:VCALENDAR/);
  expect(Object.fromEntries(file.headers)).toMatchObject({
    "content-disposition": "attachment; filename*=UTF-8''seed-swap.ics",
    "content-type": "application/octet-stream",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
  });
  const raw = await fetch(`${url}/message/${number}/raw`);
  expect(raw.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  const stored = Buffer.from(rowsOf(archive).find((row) => row.call_number === number)?.raw as Uint8Array);
  expect(await raw.text()).toBe(`Archived-At: <${url}/message/${number}>\n${stored}`);
  for (const path of [
    `/message/${number}/attachments/2`,
    `/message/${number}/attachments/x`,
    `${GARDEN_LIST}/2025-03`,
    "/list/other",
  ])
    await textOf(url + path, 404);
  const next = /rel="next" href="([^"]+)"/.exec(page)?.[1];
  expect(await textOf(url + next)).toContain(`rel="prev" href="/message/${number}"`);
});

test("the feeds have the messages with their links, and parse as XML does", async () => {
  const { archive } = await importedArchive(GARDEN, [
    'Subject: <b>&\x01\x08 x\nFrom: "A<" <a@b.example>\nDate: Mon, 5 Jan 2026 10:00:00 +0000\n\n]]>',
  ]);
  const { url } = await startReader(archive, "--base-url", "https://lists.example.org/mail/");
  await untilIndexed(url);
  const feed = await textOf(`${url}/feed.atom`);
  expect(feed.match(/<entry>/g)).toHaveLength(30);
  expect(feed).toContain("<title>&lt;b&gt;&amp;\ufffd x</title>");
  expect(feed).toContain("<summary>]]&gt;</summary>");
  expect(feed).toMatch(/<id>https:\/\/lists\.example\.org\/mail\/message\/\w{8}<\/id>/);
  expect([...feed].filter((character) => character < " " && character !== "\n")).toEqual([]);
  const list = await textOf(`${url}${GARDEN_LIST}/feed.atom`);
  expect(list).toContain(`href="https://lists.example.org/mail${GARDEN_LIST}/feed.atom"`);
  expect(await textOf(`${url}/`)).toContain('href="/mail/message/');
});

describe("the search", () => {
  test("finds words, phrases, senders and lists, the newest first, and a call number exactly", async () => {
    const { archive } = await importedArchive(GARDEN);
    const { url } = await startReader(archive);
    await untilIndexed(url);
    const found = async (query: string) => {
      const page = await textOf(`${url}/search?q=${encodeURIComponent(query)}`);
      return [...page.matchAll(/href="\/message\/(\w{8})"/g)].map(([, number]) => number as string);
    };
    const number = numberOf(archive, SEEDS);
    expect(await found("seed swap")).toContain(number);
    expect(await found("seeds")).toContain(number);
    expect(await found('"swap seed"')).not.toContain(number);
    expect(await found("from:priya beans")).toEqual([number]);
    expect(await found("from:tom subject:swap")).toHaveLength(1);
    expect(await found("albahaca")).toHaveLength(1);
    expect(await found("giessplan")).toEqual([]);
    expect((await found("list:garden.lists garden")).length).toBeGreaterThan(0);
    expect(await found(number)).toEqual([number]);
    expect(await found(number.toLowerCase())).toEqual([]);
    const all = await found("the");
    const dates = all.map(
      (each) => rowsOf(archive).find((row) => row.call_number === each) as unknown as { date: string },
    );
    expect(dates.map(({ date }) => date.slice(0, 10))).toEqual(
      dates
        .map(({ date }) => date.slice(0, 10))
        .toSorted()
        .toReversed(),
    );
  });

  test("takes whatever is typed for words", async () => {
    const { archive } = await importedArchive(["Subject: x\n\nbody"]);
    const { url, errors } = await startReader(archive);
    const typed = [
      '"',
      "*",
      "a AND",
      "NEAR(",
      "col:x",
      "^",
      "\0",
      "x".repeat(1_000),
      "(",
      '"a" OR "b"',
      "-",
      "' or 1=1 --",
      "from:",
      "%",
    ];
    for (const query of typed) {
      const words = encodeURIComponent(query);
      await textOf(`${url}/search?q=${words}&before=x&list=${words}&list=b`);
      await textOf(`${url}/search?q=${words}%20body&before=1e300&q=2`);
    }
    expect(errors).toEqual([]);
  });

  test("is made again when its file is missing, is no database, or is that of another archive", async () => {
    const { archive } = await importedArchive(["Subject: one\n\nuncommonword"]);
    const other = await importedArchive(["Subject: two\n\nanotherword"]);
    const search = async () => {
      const reader = await startReader(archive);
      await untilIndexed(reader.url);
      const page = await textOf(`${reader.url}/search?q=uncommonword`);
      expect(await reader.stop()).toBe(0);
      return page;
    };
    expect(await search()).toContain(numberOf(archive, "one"));
    rmSync(`${archive}.search`);
    expect(await search()).toContain(numberOf(archive, "one"));
    writeFileSync(`${archive}.search`, "no database, but long enough to look like something".repeat(100));
    expect(await search()).toContain(numberOf(archive, "one"));
    const reader = await startReader(other.archive);
    await untilIndexed(reader.url);
    await reader.stop();
    writeFileSync(`${archive}.search`, readFileSync(`${other.archive}.search`));
    expect(await search()).toContain(numberOf(archive, "one"));
  });

  test("finds what arrives while the server runs, and two servers share the index", async () => {
    const { archive, coordinator, directory } = await importedArchive(["Subject: one\n\nfirst"]);
    const readers = [await startReader(archive), await startReader(archive)];
    writeFileSync(`${directory}/more.mbox`, "From a Mon Jan  5 10:00:00 2015\nSubject: two\n\nlaterword\n\n");
    await runImporter(`${directory}/more.mbox`, "--archive", archive, "--coordinator", coordinator.url);
    for (const { url, errors } of readers) {
      await expect.poll(() => textOf(`${url}/search?q=laterword`)).toContain(numberOf(archive, "two"));
      expect(await textOf(`${url}/`)).toContain("2 messages");
      expect(errors).toEqual([]);
    }
  });
});

describe("a missing message", () => {
  test("is 404, with the numbers that may have been meant, and with what the coordinator knows", async () => {
    const { archive, coordinator } = await importedArchive(GARDEN);
    const { url } = await startReader(archive, "--coordinator", coordinator.url);
    // With letters of both cases.
    const { call_number: number, subject } = rowsOf(archive).find((row) =>
      /[a-z].*[A-Z]|[A-Z].*[a-z]/.test(row.call_number),
    ) as ArchiveRow;
    for (const typed of [number.toUpperCase(), number.toLowerCase(), `${number}.`, `%E2%80%9C${number}`]) {
      const page = await textOf(`${url}/message/${typed}`, 404);
      expect(page).toContain(`<code>${number}</code> ${subject}`);
    }
    expect(await textOf(`${url}/message/zzzzzzzz`, 404)).toContain("No message can have this number");
    // Of a run that was never leased, and of one that is open.
    expect(await textOf(`${url}/message/dxlGgaI3`, 404)).toContain("There never was a message dxlGgaI3");
    const alone = await startReader(archive);
    expect(await textOf(`${alone.url}/message/dxlGgaI3`, 404)).toContain("is not in this archive");
    await coordinator.stop();
    expect(await textOf(`${url}/message/dxlGgaI3`, 404)).toContain("is not in this archive");
  });

  test("redirects to the number that an import without the file of numbers gave it, also after another loss", async () => {
    const { directory, archive, coordinator } = await importedArchive(["Subject: one\n\nfirst"]);
    const numbers = `${directory}/numbers.ndjson`;
    const to = ["--archive", archive, "--coordinator", coordinator.url];
    await runImporter(`${directory}/0.mbox`, ...to, "--numbers", numbers);
    const before = numberOf(archive, "one");
    for (const suffix of ["", "-wal", "-shm"]) rmSync(archive + suffix, { force: true });
    await runImporter(`${directory}/0.mbox`, ...to);
    const after = numberOf(archive, "one");
    const { summary } = await runImporter(`${directory}/0.mbox`, ...to, "--numbers", numbers);
    expect(JSON.stringify(summary?.problems)).toContain(`the message ${after} has the number ${before} in it`);
    for (const again of [false, true]) {
      if (again) {
        for (const suffix of ["", "-wal", "-shm"]) rmSync(archive + suffix, { force: true });
        await runImporter(`${directory}/0.mbox`, ...to, "--numbers", numbers);
      }
      const { url } = await startReader(archive, "--base-url", "https://lists.example.org/mail");
      for (const path of [`/message/${before}`, `/message/${before}/raw`, `/search?q=${before}`]) {
        const response = await fetch(url + path, { redirect: "manual" });
        if (path.startsWith("/search")) expect(await response.text()).toContain(`/mail/message/${after}`);
        else expect([response.status, response.headers.get("location")]).toEqual([307, `/mail/message/${after}`]);
      }
      await textOf(`${url}/message/${after}`);
    }
  });

  test("is searched for at its old address, which redirects", async () => {
    const { archive } = await importedArchive(GARDEN);
    const number = numberOf(archive, SEEDS);
    using database = new DatabaseSync(archive);
    database.prepare("insert into old_links values (?, ?)").run("/pipermail/garden/2025-April/000001.html", number);
    const { url } = await startReader(archive, "--base-url", "https://lists.example.org/mail");
    const response = await fetch(`${url}/pipermail/garden/2025-April/000001.html`, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([308, `/mail/message/${number}`]);
    await textOf(`${url}/pipermail/garden/2025-april/000001.html`, 404);
  });
});

test("relatives link each other, and a list of another name has its own page", async () => {
  const of = (list: string, body: string) =>
    `Message-ID: <x@a.example>\nSubject: on ${list}\nList-Id: <${list}>\nDate: Mon, 5 Jan 2015 10:00:00 +0000\n\n${body}`;
  const { archive } = await importedArchive(
    [of("a/b?c&d", "same text")],
    [of("../x", "same text")],
    ["Subject: none\n\nx"],
  );
  const { url } = await startReader(archive);
  const [one, other] = [numberOf(archive, "on a/b?c&d"), numberOf(archive, "on ../x")];
  expect(await textOf(`${url}/message/${one}`)).toMatch(
    new RegExp(`Also in</dt>\\s*<dd><a href="/message/${other}">../x<`),
  );
  expect(await textOf(`${url}/message/${other}`)).toMatch(
    new RegExp(`Also in</dt>\\s*<dd><a href="/message/${one}">a/b\\?c&amp;d<`),
  );
  for (const [, path] of (await textOf(`${url}/`)).matchAll(/<li><a href="(\/(?:list|unlisted)[^"]*)"/g)) {
    const list = await textOf(url + path);
    await textOf(url + /href="(\/[^"]+\/(?:2015-01|undated))"/.exec(list)?.[1]);
  }
});

test("options hide raw messages, show addresses, and keep search engines away", async () => {
  const { archive } = await importedArchive(GARDEN);
  const number = numberOf(archive, SEEDS);
  const { url } = await startReader(archive, "--no-raw", "--show-addresses", "--no-index", "--title", "Beech & Co");
  const response = await fetch(`${url}/message/${number}`);
  const page = await response.text();
  expect(response.headers.get("x-robots-tag")).toBe("noindex, nofollow");
  expect(page).toContain("priya@beechstreet.example");
  expect(page).toContain("Beech &amp; Co");
  expect(page).not.toContain("/raw");
  await textOf(`${url}/message/${number}/raw`, 404);
  expect(await textOf(`${url}/robots.txt`)).toBe("User-agent: *\nDisallow: /\n");
});

test("hostile requests are answered with pages that have nothing of them, and change nothing", async () => {
  const { archive } = await importedArchive(["Subject: x\n\nbody"]);
  const before = readFileSync(archive);
  const { url, errors } = await startReader(archive);
  const requests = [
    ["/%", 400],
    ["/message/%ff", 400],
    ["/message/..%2f..%2fetc%2fpasswd", 404],
    [`/message/${"x".repeat(2_000)}`, 400],
    ["/message/%00", 404],
    ["/list/%2e%2e", 404],
    ["/unlisted/2005-13", 404],
    ["/<script>alert(1)</script>", 404],
    [`/${"x".repeat(20_000)}`, 431],
  ] as const;
  for (const [path, status] of requests) {
    const answer = await rawAnswer(url, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).not.toContain("<script>");
    if (status !== 431) expect(answer).toContain("default-src 'none'");
  }
  for (const method of ["POST", "PUT", "DELETE"]) expect((await fetch(`${url}/`, { method })).status).toBe(404);
  expect((await fetch(`${url}/`, { method: "POST", body: "x".repeat(10_000) })).status).toBeGreaterThanOrEqual(400);
  expect(errors).toEqual([]);
  expect(readFileSync(archive).equals(before)).toBe(true);
});

test("an archive that is missing, or another file, is refused by name", async () => {
  await expect(startReader("/nowhere/mail.db")).rejects.toThrow("There is no archive at /nowhere/mail.db");
  await expect(startReader(GARDEN)).rejects.toThrow(/archive_unusable/);
});

test("a damaged search index is made again", async () => {
  const { archive } = await importedArchive(GARDEN);
  const first = await startReader(archive);
  await untilIndexed(first.url);
  await first.stop();
  const index = `${archive}.search`;
  const bytes = readFileSync(index);
  writeFileSync(index, bytes.fill(0xff, 100, 4096));
  const { url } = await startReader(archive);
  await untilIndexed(url);
  expect(await textOf(`${url}/search?q=seed`)).toContain("Seed swap");
});

test("a list whose name has a quotation mark is searched alone", async () => {
  const { archive } = await importedArchive([
    'Subject: one\nList-Id: <a"b>\n\nneedle',
    "Subject: other\nList-Id: <c>\n\nneedle",
  ]);
  const { url } = await startReader(archive);
  await untilIndexed(url);
  const found = await textOf(`${url}/search?q=needle&list=${encodeURIComponent('a"b')}`);
  expect([found.includes(">one<"), found.includes(">other<")]).toEqual([true, false]);
});

test("a mail of nothing but parts is shown as unreadable once, and takes no other message's turn", async () => {
  const parts = "--b\n\n".repeat(1_000_000);
  const { archive } = await importedArchive([
    `Subject: hostile\nContent-Type: multipart/mixed; boundary=b\n\n${parts}`,
    "Subject: good\n\ngood text",
  ]);
  const { url } = await startReader(archive);
  const pages = [1, 2, 3, 4].map(() => textOf(`${url}/message/${numberOf(archive, "hostile")}`));
  expect(await textOf(`${url}/message/${numberOf(archive, "good")}`)).toContain("good text");
  for (const page of await Promise.all(pages)) expect(page).toContain("be shown: it takes too long");
});

async function rawAnswer(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.end(request);
  return await text(socket);
}
