/** SIGHUP asks for files to be read again, from the start to the end of a process: without a listener it would end it. */
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SILENT_LOG } from "@callnumber/coordinator";
import { expect, onTestFinished, test } from "vitest";
import { newAuthority } from "../../../test/tls/certificates.js";
import { writeTlsFiles } from "../../../test/tls/files.js";
import { readTls, reloadTlsOnHangUp } from "../src/serve/tls.js";
import { beInCommand } from "./in-command.js";

test("is listened to also while a server with TLS stops: it must not cut the stop short", () => {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = writeTlsFiles(folder, newAuthority().issue());
  const signals = new EventEmitter();
  beInCommand(signals);
  const endReload = reloadTlsOnHangUp(readTls(files), () => {}, SILENT_LOG);
  endReload();
  expect(signals.listenerCount("SIGHUP")).toBe(1);
});
