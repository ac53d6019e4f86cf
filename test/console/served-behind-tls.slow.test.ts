/** The console of a real `callnumber serve` behind TLS, with a file of tokens: signing in and out, and what the browser is given to keep. */
import { createHash, X509Certificate } from "node:crypto";
import { request } from "node:https";
import { join } from "node:path";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { describe, expect, onTestFinished, test } from "vitest";
import { callnumber, folderForTest, serve } from "../processes/command.js";
import { newAuthority } from "../tls/certificates.js";
import { writeTlsFiles } from "../tls/files.js";
import { CHROMIUM, chromiumForFile, mustStandAt, newPage } from "./browser.js";
import { signIn } from "./closed-console.js";

const authority = newAuthority();
const pair = authority.issue();
const ownKey = createHash("sha256")
  .update(new X509Certificate(pair.certificate).publicKey.export({ type: "spki", format: "der" }))
  .digest("base64");
// This one key, and nothing else that is not known: Chromium has no switch for an authority.
const browser = chromiumForFile(`--ignore-certificate-errors-spki-list=${ownKey}`);

async function servedBehindTls(certified = pair) {
  const folder = await folderForTest();
  const tokensFile = join(folder, "tokens");
  const create = ["token", "create", "--tokens-file", tokensFile, "--role", "read", "--namespace", "main"];
  const token = (await callnumber(create)).stdout.trim();
  const files = writeTlsFiles(folder, certified);
  const flags = ["--tokens-file", tokensFile, "--tls-certificate", files.certificate, "--tls-key", files.key];
  const coordinator = await serve("memory:", ...flags, "--log-level", "debug");
  return { ...coordinator, token };
}

describe.skipIf(CHROMIUM === undefined)("the console of a coordinator behind TLS", () => {
  test("is signed in at with a token of its file, by a cookie that no script, no other site and no plain HTTP gets", async () => {
    const { url, token, output, stop } = await servedBehindTls();
    const { page, wrongs } = await newPage(browser(), new URL(url).origin);
    onTestFinished(() => expect(wrongs()).toEqual([]));
    await page.goto(`${url}${OPERATOR_ROUTES.console}#/main`);
    await mustStandAt(page, "Sign in");
    expect(await page.evaluate("[location.protocol, isSecureContext]")).toEqual(["https:", true]);
    await signIn(page, token);
    await mustStandAt(page, "Overview");
    const [cookie, ...others] = await page.context().cookies();
    expect(others).toEqual([]);
    expect(cookie).toMatchObject({ secure: true, httpOnly: true, sameSite: "Strict", path: "/", domain: "127.0.0.1" });
    expect(cookie?.name).toMatch(/^__Host-/);
    expect(await page.evaluate("document.cookie")).toBe("");
    // The session outlives the page.
    await page.reload();
    await mustStandAt(page, "Overview");
    const given = `${cookie?.name}=${cookie?.value}`;
    expect(await statusWith(url, given)).toBe(200);

    await page.getByRole("button", { name: "Sign out" }).click();
    await mustStandAt(page, "Sign in");
    expect(await page.context().cookies()).toEqual([]);
    expect(await statusWith(url, given)).toBe(401);

    expect(await stop()).toBe(0);
    const { stdout, stderr } = output();
    const told = stdout.split("\n").filter((line) => /"msg":"sign_(in|out)"/.test(line));
    expect(told.map((line) => JSON.parse(line).tokenId)).toEqual([idOf(token), idOf(token)]);
    for (const secret of [token, cookie?.value as string]) expect(stdout + stderr).not.toContain(secret);
  });

  test("is not opened under another key: the browser of these tests believes one alone", async () => {
    const { url } = await servedBehindTls(authority.issue());
    const { page } = await newPage(browser(), new URL(url).origin);
    await expect(page.goto(`${url}${OPERATOR_ROUTES.console}`)).rejects.toThrow(/ERR_CERT_AUTHORITY_INVALID/);
  });
});

/** What the list of namespaces answers to a page of the coordinator's own that bears this cookie. */
async function statusWith(url: string, cookie: string): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const headers = { cookie, "sec-fetch-site": "same-origin" };
    request(new URL(OPERATOR_ROUTES.namespaces, url), { ca: authority.certificate, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on("error", reject)
      .end();
  });
}

/** As the log and the ledger name it. */
function idOf(token: string): string {
  return createHash("sha256").update(token).digest("hex").slice(0, 8);
}
