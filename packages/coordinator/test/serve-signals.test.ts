/** SIGHUP asks for files to be read again, from the start to the end of a process: without a listener it would end it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { expect, onTestFinished, test } from "vitest";
import { newAuthority } from "../../../test/tls/certificates.js";
import { writeTlsFiles } from "../../../test/tls/files.js";
import { startTls } from "../src/cli/serve-tls.js";
import { SILENT_LOG } from "../src/log.js";

test("is listened to also while a server with TLS stops: it must not cut the stop short", () => {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const before = process.listeners("SIGHUP");
  const tls = startTls(writeTlsFiles(folder, newAuthority().issue()), SILENT_LOG);
  const own = process.listeners("SIGHUP").filter((listener) => !before.includes(listener));
  onTestFinished(() => own.forEach((listener) => void process.off("SIGHUP", listener)));
  tls.stop();
  expect(own).toHaveLength(1);
  expect(process.listeners("SIGHUP")).toContain(own[0]);
});
