/** `serve` with TLS: which clients reach it, what it prints at its start, and what SIGHUP does. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { beforeEach, expect, test } from "vitest";
import { callnumber, callnumberProcess, folderForTest, serve } from "../processes/command.js";
import { newAuthority } from "./certificates.js";
import { replaceFile, type TlsFiles, writeTlsFiles } from "./files.js";

const authority = newAuthority();

let folder: string;
let files: TlsFiles;
let ca: string;

beforeEach(async () => {
  folder = await folderForTest();
  files = writeTlsFiles(folder, authority.issue());
  ca = replaceFile(join(folder, "ca.crt"), authority.certificate, 0o644);
});

const tlsFlags = () => ["--tls-certificate", files.certificate, "--tls-key", files.key];

test("importers and commands reach a coordinator with TLS when NODE_EXTRA_CA_CERTS has its CA", async () => {
  const { url } = await serve("memory:", ...tlsFlags());
  expect(url).toMatch(/^https:/);
  const env = { NODE_EXTRA_CA_CERTS: ca };
  const next = await callnumberProcess(["next", "-n", "2", "--coordinator", url], { env });
  expect(next).toMatchObject({ code: 0, stdout: expect.stringMatching(/^([0-9A-Za-z]{8}\n){2}$/) });
  for (const command of [["status"], ["runs"], ["inspect", next.stdout.slice(0, 8)], ["export"]]) {
    const { code, stderr } = await callnumberProcess([...command, "--coordinator", url], { env });
    expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: "" });
  }
});

test("a client rejects a certificate of another authority or for another host, sends nothing, and prints what to set", async () => {
  const { url, output } = await serve("memory:", ...tlsFlags());
  const rejected = /certificate is from an unknown authority\. .*NODE_EXTRA_CA_CERTS.*certificate_rejected/s;
  for (const command of ["status", "next"]) {
    const ended = await callnumber([command, "--coordinator", url]);
    expect(ended).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(rejected) });
  }
  const other = replaceFile(join(folder, "other.crt"), newAuthority().certificate);
  const withOther = { env: { NODE_EXTRA_CA_CERTS: other } };
  expect(await callnumberProcess(["next", "--coordinator", url], withOther)).toMatchObject({ code: 1, stdout: "" });
  expect(output().stdout).not.toContain('"lease"');
  files = writeTlsFiles(folder, authority.issue({ names: ["elsewhere.example"] }));
  const elsewhere = await serve("memory:", ...tlsFlags());
  const status = ["status", "--coordinator", elsewhere.url];
  const { code, stderr } = await callnumberProcess(status, { env: { NODE_EXTRA_CA_CERTS: ca } });
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("is for another host name") });
});

test("a command with http for https, or https for http, prints which one to use", async () => {
  const { url } = await serve("memory:", ...tlsFlags());
  const { url: plainUrl } = await serve("memory:");
  for (const command of ["next", "status"]) {
    const asked = await callnumber([command, "--coordinator", url.replace("https:", "http:")]);
    expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining("Use https://") });
    const other = await callnumber([command, "--coordinator", plainUrl.replace("http:", "https:")]);
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("Use http://") });
    expect(other.stderr).not.toContain("openssl");
  }
});

test("a coordinator with a client CA rejects a client without a certificate of it", async () => {
  const { url, output } = await serve("memory:", ...tlsFlags(), "--tls-client-ca", ca, "--log-level", "debug");
  expect(await callnumberProcess(["next", "--coordinator", url], { env: { NODE_EXTRA_CA_CERTS: ca } })).toMatchObject({
    code: 1,
    stdout: "",
  });
  expect(output().stdout).toContain('"handshake_failed"');
  expect(output().stdout).not.toContain('"msg":"lease"');
});

test("serve prints which addresses it listens on, and that nothing is encrypted when there is no TLS", async () => {
  const anywhere = ["--host", "0.0.0.0", "--listen-without-tokens"];
  const open = (await serve("memory:", ...anywhere, "--listen-without-tls")).output().stderr;
  expect(open).toMatch(/^--host 0\.0\.0\.0: listens on every address of this machine$/m);
  expect(open).toMatch(/^nothing is encrypted, .*--listen-without-tls/m);
  const encrypted = (await serve("memory:", ...anywhere, ...tlsFlags())).output().stderr;
  expect(encrypted).toContain("every address");
  expect(encrypted).not.toContain("nothing is encrypted");
  const own = (await serve("memory:")).output().stderr;
  expect(own).not.toMatch(/every address|encrypted/);
});

test("serve fails with an expired certificate, before a store is made", async () => {
  files = writeTlsFiles(folder, authority.issue({ untilMs: Date.UTC(2026, 0) }));
  const path = join(folder, "store.db");
  const words = ["serve", "--create", "--store", `sqlite:${path}`, "--port", "0", ...tlsFlags()];
  const { code, stderr } = await callnumber(words);
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("expired on 2026-01-01T00:00") });
  expect(existsSync(path)).toBe(false);
});

test("serve logs and prints a warning within 14 days of the certificate's expiry", async () => {
  files = writeTlsFiles(folder, authority.issue({ untilMs: Date.now() + 5.5 * 24 * 3_600_000 }));
  const { output } = await serve("memory:", ...tlsFlags());
  expect(linesOf(output().stdout)).toContainEqual(
    expect.objectContaining({ msg: "certificate_expiring", daysLeft: 5, level: 40 }),
  );
  expect(output().stderr).toMatch(/^The TLS certificate expires in 5 days, on 20\S+Z: renew it$/m);
});

test("serve loads new files at SIGHUP, and logs what is wrong with those that do not fit", async () => {
  const { url, send, output, stop } = await serve("memory:", ...tlsFlags());
  const before = await shown(url);
  const logged = async (event: string) => {
    send("SIGHUP");
    await expect.poll(() => output().stdout).toContain(event);
  };
  replaceFile(files.key, authority.issue().key);
  await logged('"certificate_reload_failed"');
  expect(await shown(url)).toBe(before);
  writeTlsFiles(folder, authority.issue());
  await logged('"certificate_reloaded"');
  expect(await shown(url)).not.toBe(before);
  expect(await stop()).toBe(0);
});

async function shown(url: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), ca: authority.certificate });
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

function linesOf(text: string): readonly unknown[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}
