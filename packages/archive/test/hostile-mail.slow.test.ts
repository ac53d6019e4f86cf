/** Hostile mail in a real Chromium: it shows as text, runs nothing, asks nothing of other hosts, and stops no page of other messages. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chromiumForFile, expectAccessible, newPage, WINDOWS } from "../../../test/console/browser.js";
import { GARDEN, rowsOf, runImporter } from "./importing.js";
import { importedArchive, numberOf, startReader, textOf, untilIndexed } from "./reading.js";

const browser = chromiumForFile();
const SCRIPT = "<script>alert(1)</script>";
const IMAGE = `"><img src=https://evil.example/x onerror=alert(2)>`;

function hostileMessages(): readonly string[] {
  const header = (subject: string, ...fields: readonly string[]) =>
    [
      `Subject: ${subject}`,
      `From: ${IMAGE} <evil@evil.example>`,
      `To: ${SCRIPT}`,
      "Date: Mon, 5 Jan 2015 10:00:00 +0100",
      ...fields,
      "",
      "",
    ].join("\n");
  const html = `<html><head><style>@import url(https://evil.example/a.css); body{display:none}</style><base href="https://evil.example/">
    <meta http-equiv="refresh" content="0;url=https://evil.example/"><link rel=stylesheet href=https://evil.example/b.css></head>
    <body onload="alert(3)"><p onclick="alert(4)" style="position:fixed">Visible ${"text"}</p><iframe src="https://evil.example/"></iframe>
    <img src="https://evil.example/pixel.gif"><svg onload="alert(5)"><script>alert(6)</script></svg><form action="https://evil.example/"><button>Send</button></form>
    <a href="javascript:alert(7)">one</a> <a href="data:text/html,<script>alert(8)</script>">two</a> &lt;script&gt;alert(9)&lt;/script&gt;</body></html>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(10)"><script>alert(11)</script></svg>`;
  const mixed = (parts: readonly string[]) => `${parts.map((part) => `--b\n${part}\n`).join("")}--b--\n`;
  const isMixed = "Content-Type: multipart/mixed; boundary=b";
  return [
    `${header(`${SCRIPT}${IMAGE}`)}${SCRIPT}\n> ${SCRIPT}\n${IMAGE}\njavascript:alert(1) data:text/html,${SCRIPT} https://evil.example/"onmouseover="alert(1)\n`,
    header("in HTML", "Content-Type: text/html; charset=utf-8") + html,
    header("with pictures", isMixed) +
      mixed([
        "Content-Type: text/plain\n\ntext",
        `Content-Type: image/svg+xml\nContent-Disposition: inline; filename="${IMAGE.replaceAll('"', "'")}.svg"\n\n${svg}`,
        `Content-Type: text/html\nContent-Disposition: attachment; filename="a\u202egpj.html"\n\n${html}`,
      ]),
    header("=?utf-8?B?4oCuZGVzcmV2ZXI=?= \u0000 NUL", "X-Long: x") + "a\0b\0\0\0c\n\u202eright to left",
    header("a long header", `X-Long: ${"x".repeat(1_000_000)}`) + "text below",
    header(`long ${"subject ".repeat(60_000)}`) + "text below",
    header("5,000 attachments", isMixed) +
      mixed(Array.from({ length: 5_000 }, (_, index) => `Content-Disposition: attachment; filename=${index}.txt\n\nx`)),
    header("too deep", "Content-Type: multipart/mixed; boundary=b0") +
      Array.from(
        { length: 5_000 },
        (_, depth) => `--b${depth}\nContent-Type: multipart/mixed; boundary=b${depth + 1}\n\n`,
      ).join(""),
    header("too much", isMixed) + mixed(Array.from({ length: 300_000 }, () => "Content-Disposition: attachment\n\nx")),
    header("rows", "Content-Type: text/html") + "<table><tr><td>x".repeat(50_000),
    header("round a", "Message-ID: <a@e.example>", "In-Reply-To: <b@e.example>") + "a",
    header("round b", "Message-ID: <b@e.example>", "In-Reply-To: <a@e.example>") + "b",
    `Subject: bare\nFrom: \nDate: never\nList-Id: <"onclick="alert(1)>\n\n${"> ".repeat(1_000)}deep\n${"\u0301".repeat(1_000)}`,
  ];
}

test("no page of hostile mail runs, asks or hides anything, in both colors and widths, and axe finds nothing", async () => {
  const { archive } = await importedArchive(GARDEN, hostileMessages());
  const { url, errors } = await startReader(archive);
  await untilIndexed(url);
  const numbers = rowsOf(archive).filter(({ source }) => source.endsWith(".mbox") && !source.endsWith("garden.mbox"));
  const lists = [...(await textOf(`${url}/`)).matchAll(/href="(\/(?:list|unlisted)[^"]*)"/g)].map(
    ([, path]) => path as string,
  );
  const garden = "/list/garden.lists.beechstreet.example";
  const paths = [
    "/",
    ...lists,
    "/unlisted/2015-01",
    `${garden}/2025-05`,
    "/search?q=script",
    "/search?q=visible",
    "/message/zzzzzzzz",
  ];
  const messages = [
    ...numbers.map((row) => `/message/${row.call_number}`),
    `/message/${numberOf(archive, "Gießplan für die erste Maiwoche")}`,
  ];
  for (const [name, options] of WINDOWS) {
    const page = await newPage(browser(), url, options);
    page.on("dialog", (dialog) => expect.fail(`dialog: ${dialog.message()}`));
    const isFirst = name === WINDOWS[0][0];
    for (const path of [...paths, ...(isFirst ? messages : messages.slice(0, 4)), messages.at(-1) as string]) {
      expect((await page.goto(url + path))?.headers()["content-security-policy"]).toContain("default-src 'none'");
      expect(
        await page.evaluate(
          "document.querySelectorAll('script, style, iframe, img, svg, base, object, [onclick], [onload], [style]').length",
        ),
      ).toBe(0);
      expect(await page.evaluate("[...document.links].every(({ protocol }) => /^https?:$/.test(protocol))")).toBe(true);
      await expectAccessible(page, `${path.replace(/\W+/g, "-")} ${name}`);
    }
  }
  const page = await newPage(browser(), url);
  const mainOf = async (subject: string) => {
    await page.goto(`${url}/message/${numberOf(archive, subject)}`);
    return await page.locator("main").innerText();
  };
  expect(await mainOf(`${SCRIPT}${IMAGE}`)).toContain(`${SCRIPT}\n`);
  expect(await mainOf("in HTML")).toMatch(/Visible text[^]*<script>alert\(9\)<\/script>/);
  expect(await mainOf("5,000 attachments")).toContain("The first 100 of 5000.");
  for (const subject of ["too deep", "too much"])
    expect(await mainOf(subject)).toContain("The text of this message can't be shown");
  const downloading = page.waitForEvent("download");
  await page.goto(`${url}/message/${numberOf(archive, "with pictures")}`);
  await page.getByRole("link", { name: "agpj.html" }).click();
  expect((await downloading).suggestedFilename()).toBe("agpj.html");
  const raw = await page.goto(`${url}/message/${numberOf(archive, "in HTML")}/raw`);
  expect(raw?.headers()["content-type"]).toBe("text/plain; charset=utf-8");
  expect(errors).toEqual([]);
});

test("a message that exhausts the parser leaves the others readable, and the server as it was", async () => {
  const { archive, directory, coordinator } = await importedArchive(["Subject: good\n\ntext that is fine"]);
  await writeFile(
    join(directory, "bad.mbox"),
    `From a Mon Jan  5 10:00:00 2015\nSubject: bad\n\n${"a\n".repeat(3_000_000)}\n`,
  );
  await runImporter(join(directory, "bad.mbox"), "--archive", archive, "--coordinator", coordinator.url);
  const { url, stop } = await startReader(archive);
  const paths = ["bad", "good", "bad", "good"].map((subject) => `${url}/message/${numberOf(archive, subject)}`);
  const [bad, good] = await Promise.all(paths.map((path) => textOf(path)));
  expect(bad).toContain("can&#39;t be shown");
  expect(good).toContain("text that is fine");
  await untilIndexed(url);
  expect(await textOf(`${url}/search?q=fine`)).toContain("good");
  expect(await stop()).toBe(0);
});
