/**
 * The shipped service: read by systemd's own checks, and run by a systemd that is process 1 of its namespaces, after the steps of
 * docs/how-to/deploy.md as they are printed.
 */
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { DRAIN_TIMEOUT_MS } from "../../packages/coordinator/src/http/node-servers.js";
import { folderForTest, REPOSITORY } from "../processes/command.js";
import { outputOf } from "../processes/server-process.js";
import { type SystemdMachine, startSystemd, systemdUnavailable } from "./systemd-machine.js";

const DEPLOY = join(REPOSITORY, "deploy");
const UNIT = join(DEPLOY, "systemd", "callnumber.service");
const TOKENS_FILE = "--tokens-file /etc/callnumber/tokens";
/** Of 10; lower is less exposed. */
const EXPOSURE_MAX = 1.5;

describe("systemd-analyze", () => {
  beforeEach(({ skip }) =>
    skip(spawnSync("systemd-analyze", ["--version"]).status !== 0, "systemd-analyze is not on PATH"),
  );

  test("systemd-analyze verify accepts the service", async () => {
    const root = await folderForTest();
    const [programs, units] = [join(root, "usr", "bin"), join(root, "usr", "lib", "systemd", "system")];
    for (const folder of [programs, units]) mkdirSync(folder, { recursive: true });
    for (const name of ["callnumber", "timeout"]) writeFileSync(join(programs, name), "", { mode: 0o755 });
    for (const name of ["sysinit", "basic", "shutdown", "network", "time-sync", "multi-user"])
      writeFileSync(join(units, `${name}.target`), "[Unit]\n");
    const own = join(units, "callnumber.service");
    cpSync(UNIT, own);
    const verify = { program: "systemd-analyze", words: [`--root=${root}`, "verify", own] };
    expect(await outputOf({ ...verify, runIn: ["sh", "-c", '"$@" 2>&1', "sh"] })).toBe("");
  });

  test("systemd-analyze security finds the service little exposed", async () => {
    const words = ["security", "--offline=true", "--no-pager", UNIT];
    const [score = ""] =
      (await outputOf({ program: "systemd-analyze", words })).match(/Overall exposure level.*/) ?? [];
    console.log(score);
    expect(Number(/: ([0-9.]+) /.exec(score)?.[1])).toBeLessThanOrEqual(EXPOSURE_MAX);
  });
});

test("systemd waits longer for a stop than the coordinator for its requests", () => {
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(readFileSync(UNIT, "utf8"))?.[1]);
  expect(seconds * 1_000).toBeGreaterThanOrEqual(2 * DRAIN_TIMEOUT_MS);
});

describe("the service", () => {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-systemd-"));
  let machine: SystemdMachine | undefined;
  let unavailable = systemdUnavailable();

  beforeAll(async () => {
    if (unavailable !== undefined) return;
    const pack = [join(REPOSITORY, "scripts", "pack.mjs"), join(folder, "dist")];
    await outputOf({ program: process.execPath, words: pack });
    cpSync(DEPLOY, join(folder, "deploy"), { recursive: true });
    machine = await startSystemd(folder).catch((error: Error) => {
      unavailable = error.message;
      return undefined;
    });
    await machine?.run(documentedSteps());
  });
  afterAll(async () => {
    await machine?.stop();
    rmSync(folder, { recursive: true });
  });
  beforeEach(async ({ skip }) => {
    skip(unavailable !== undefined, unavailable);
    await restartWith("");
  });

  const run = (lines: string) => (machine as SystemdMachine).run(lines);
  const properties = (...names: readonly string[]) =>
    run(`systemctl show ${names.map((name) => `--property=${name}`).join(" ")} callnumber`);
  /** With settings of an operator, in place of earlier ones. */
  const restartWith = (settings: string) => {
    const file = "/etc/systemd/system/callnumber.service.d/own.conf";
    const write = `mkdir -p "$(dirname ${file})"; printf '[Service]\\n%s\\n' '${settings}' > ${file}`;
    // Starts in quick succession would be refused.
    const reset = "systemctl daemon-reload; systemctl reset-failed callnumber || :";
    return run(`${write}; ${reset}; systemctl restart callnumber`);
  };
  const newToken = async () =>
    (await run(`callnumber token create ${TOKENS_FILE} --role lease --namespace main`)).trim();
  const next = (token: string) => run(`CALLNUMBER_TOKEN=${token} callnumber next`);
  /** Of a number made with a new token. */
  const leaser = async () => {
    const token = await newToken();
    await run("systemctl restart callnumber");
    return async () => decodeCallNumber((await next(token)).trim()).run;
  };

  test("systemctl start returns when the coordinator is ready", async () => {
    await run("systemctl stop callnumber; systemctl start callnumber; curl --fail http://127.0.0.1:7300/readyz");
  });

  test("the service skips no run after a restart, nor after it is killed", async () => {
    const leasedRun = await leaser();
    const first = await leasedRun();
    await run("systemctl restart callnumber");
    expect(await leasedRun()).toBe(first + 1);
    await run("systemctl kill --signal=KILL callnumber");
    while (!/^NRestarts=1\nActiveState=active$/m.test(await properties("NRestarts", "ActiveState")));
    expect(await leasedRun()).toBe(first + 2);
  });

  test.each(["RemoveIPC=yes", "ProcSubset=pid", "DynamicUser=yes"])(
    "the service would skip runs with %s",
    async (setting) => {
      const leasedRun = await leaser();
      const first = await leasedRun();
      await restartWith(setting);
      await run("systemctl restart callnumber");
      expect(await leasedRun()).toBeGreaterThan(first + 1);
    },
  );

  test("the service ends with success when it is stopped", async () => {
    await run("systemctl stop callnumber");
    expect(await properties("Result", "ExecMainStatus")).toBe("Result=success\nExecMainStatus=0\n");
  });

  test("the service listens on all addresses with CALLNUMBER_HOST=0.0.0.0", async () => {
    await restartWith("Environment=CALLNUMBER_HOST=0.0.0.0 CALLNUMBER_LISTEN_WITHOUT_TLS=true");
  });

  test("the service is not tried again with a wrong setting", async () => {
    await expect(restartWith("Environment=CALLNUMBER_LOG_LEVEL=loud")).rejects.toThrow("control process exited");
    expect(await properties("ActiveState", "ExecMainStatus")).toBe("ExecMainStatus=2\nActiveState=failed\n");
  });

  test("the service accepts a new token and rejects a revoked one after a restart", async () => {
    const token = await newToken();
    await expect(next(token)).rejects.toThrow("unauthorized");
    await run("systemctl restart callnumber");
    await next(token);
    const id = hash("sha256", token).slice(0, 8);
    await run(`callnumber token revoke ${id} ${TOKENS_FILE}; systemctl restart callnumber`);
    await expect(next(token)).rejects.toThrow("unauthorized");
  });
});

function documentedSteps(): string {
  const page = readFileSync(join(REPOSITORY, "docs", "how-to", "deploy.md"), "utf8");
  const [, steps] = /\n## Run as a systemd service\n[^]*?```sh\n([^]*?)```/.exec(page) ?? [];
  if (steps === undefined) throw new Error("docs/how-to/deploy.md has no steps for systemd");
  return steps;
}
