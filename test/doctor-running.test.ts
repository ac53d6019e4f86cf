/** `doctor` beside a coordinator that runs: it shows with what that one was started, to operators only, and when its certificate ends. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve } from "./processes/command.js";
import { newAuthority } from "./tls/certificates.js";
import { replaceFile, writeTlsFiles } from "./tls/files.js";

const DAY_MS = 24 * 3_600_000;
/** Where no coordinator answers. */
const NOWHERE = "http://127.0.0.1:1";

let folder: string;
let store: string;

beforeEach(async () => {
  folder = await folderForTest();
  store = `sqlite:${folder}/store.db`;
  await callnumber(["init", "--store", store]);
});

/** What doctor looks at while a coordinator has the store to itself. */
const elsewhere = () => `sqlite:${folder}/elsewhere.db`;

describe("doctor", () => {
  test("shows what the running coordinator got on its command line, and not what serve would have here", async () => {
    const { url } = await serve(store, "--connections", "77", "--name", "reading room");
    await callnumber(["init", "--store", elsewhere()]);
    const env = { CALLNUMBER_CONNECTIONS: "55" };
    const doctor = ["doctor", "--store", elsewhere(), "--coordinator", url];
    const inWords = await callnumber(doctor, { env });
    expect(inWords).toMatchObject({ code: 0, stderr: "" });
    expect(inWords.stdout).toMatch(/^ {2}connections +77 \(command line\)$/m);
    expect(inWords.stdout).toMatch(/^ {2}name +reading room \(command line\)$/m);
    expect(inWords.stdout).toMatch(/^ {2}leases-at-once +64$/m);
    expect(inWords.stdout).toContain(`the coordinator at ${url}, release `);
    expect(inWords.stdout).toContain(`on store sqlite:${folder}/store.db, has run since 20`);
    const { running, settings, notRunning } = JSON.parse((await callnumber([...doctor, "--json"], { env })).stdout);
    expect(running.settings).toContainEqual({ name: "connections", value: "77", from: "command line" });
    expect(settings).toContainEqual({ name: "connections", value: "55", from: "environment" });
    expect([running.certificateEndsAtMs, notRunning]).toEqual([null, null]);
  });

  test("is told by a token of role operator that is good for all namespaces, and says what else it was answered", async () => {
    const tokensFile = join(folder, "tokens");
    const tokenOf = async (role: string, ...where: readonly string[]) => {
      const made = await callnumber(["token", "create", "--tokens-file", tokensFile, "--role", role, ...where]);
      return replaceFile(join(folder, `${role}-${where.length}.token`), made.stdout);
    };
    const operator = await tokenOf("operator", "--all-namespaces");
    const others = [
      await tokenOf("operator", "--namespace", "main"),
      await tokenOf("read", "--all-namespaces"),
      await tokenOf("lease", "--all-namespaces"),
    ];
    const { url } = await serve(store, "--tokens-file", tokensFile);
    await callnumber(["init", "--store", elsewhere()]);
    const doctor = ["doctor", "--store", elsewhere(), "--coordinator", url];
    const told = await callnumber([...doctor, "--token-file", operator]);
    expect(told).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ {2}tokens-file +\S+tokens \(command line\)$/m),
    });
    for (const file of others) {
      const refused = await callnumber([...doctor, "--token-file", file]);
      expect(refused).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/does not tell its settings: .*\(forbidden\)/),
      });
      expect(refused.stdout).not.toContain("command line");
    }
    // Strangers may come: to every address, or through a proxy to a name that was allowed.
    for (const words of [["--listen-without-tokens"], ["--allow-host", "numbers.example.org"]]) {
      const open = await serve("memory:", ...words);
      const nobody = await callnumber(["doctor", "--store", elsewhere(), "--coordinator", open.url, "--json"]);
      expect(JSON.parse(nobody.stdout)).toMatchObject({ running: null, notRunning: { code: "not_found" } });
    }
    const bare = await callnumber([...doctor, "--json"]);
    expect(JSON.parse(bare.stdout)).toMatchObject({ running: null, notRunning: { url, code: "unauthorized" } });
  });
});

describe("of a certificate doctor says when it ends", () => {
  const authority = newAuthority();
  const flags = (files: { certificate: string; key: string }) => [
    "--tls-certificate",
    files.certificate,
    "--tls-key",
    files.key,
  ];

  test("by what the running coordinator uses, and that it is unwise to let it come to that", async () => {
    const ca = replaceFile(join(folder, "ca.crt"), authority.certificate, 0o644);
    const untilMs = Math.floor((Date.now() + 5.5 * DAY_MS) / 1_000) * 1_000;
    const { url } = await serve(store, ...flags(writeTlsFiles(folder, authority.issue({ untilMs }))));
    await callnumber(["init", "--store", elsewhere()]);
    const doctor = ["doctor", "--store", elsewhere(), "--coordinator", url];
    const { code, stdout } = await callnumber(doctor, { env: { NODE_EXTRA_CA_CERTS: ca } });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}unwise: the TLS certificate ends in 5 days, on 20/m);
    expect(stdout).toContain(`TLS certificate: until ${new Date(untilMs).toISOString()}`);
    expect(stdout).not.toContain("PRIVATE KEY");
    expect((await callnumber(doctor)).stdout).toMatch(
      /does not tell its settings: .*its certificate is from an unknown authority/m,
    );
  });

  test("by the file that the environment names, where no coordinator answers", async () => {
    const files = writeTlsFiles(folder, authority.issue({ untilMs: Date.UTC(2026, 0) }));
    const env = { CALLNUMBER_TLS_CERTIFICATE: files.certificate, CALLNUMBER_COORDINATOR: NOWHERE };
    const doctor = async () => (await callnumber(["doctor", "--store", store], { env })).stdout;
    expect(await doctor()).toMatch(/unwise: THE TLS CERTIFICATE HAS ENDED on 2026-01-01T00:00:00.000Z/);
    writeTlsFiles(folder, authority.issue());
    const good = await doctor();
    expect(good).toContain("nothing unwise is seen");
    expect(good).toMatch(/^TLS certificate: until 20/m);
    writeFileSync(files.certificate, "no certificate");
    expect(await doctor()).toMatch(/unwise: the TLS certificate \S+ holds no certificate in PEM/);
  });
});
