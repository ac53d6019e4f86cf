/** `doctor` while a coordinator runs: it examines the store that is served, and shows how that coordinator was started. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { callnumber, callnumberProcess, folderForTest, serve, serveWith } from "../../../test/processes/command.js";
import { command } from "../../../test/redis/redis-command.js";
import { sharedRedis, usersUnavailable } from "../../../test/redis/test-redis.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../../../test/tls/files.js";
import { nearExpiry } from "../src/certificate-expiry.js";
import { defaultCoordinatorAt, done, expectFailure, httpServer, jsonOf, NOWHERE } from "./commands-for-test.js";

const DAY_MS = 24 * 3_600_000;

let folder: string;
let store: string;

beforeEach(async () => {
  folder = await folderForTest();
  store = `sqlite:${folder}/store.db`;
  await done("init", "--store", store);
});

const doctorAt = (url: string, ...more: readonly string[]) => ["doctor", "--coordinator", url, ...more];

describe("doctor without --store", () => {
  test("doctor examines the embedded store of the running coordinator, which only that one can open", async () => {
    const { url, stop } = await serve(store);
    const { stdout, stderr } = await done(...doctorAt(url));
    expect(stderr).toBe("");
    expect(stdout).toContain(`${store}, as the coordinator at ${url} sees it\n  nothing found`);
    // Named, it is the same one.
    const named = await done(...doctorAt(url, "--store", store));
    expect(named.stdout).toContain(`${store}, as the coordinator at`);
    await stop();
    const alone = await done(...doctorAt(url, "--store", store));
    expect(alone.stdout).toMatch(/^sqlite:\S+store\.db\n {2}nothing found.*\nno coordinator answers at /);
  });

  test("doctor examines the Redis of the running coordinator, and not the unused default store", async ({ skip }) => {
    skip(usersUnavailable() !== undefined, usersUnavailable());
    const home = { HOME: folder, XDG_STATE_HOME: "" };
    await callnumber(["init", "--create"], { env: home });
    const { storeUrl, operatorUrl } = sharedRedis();
    await done("init", "--store", storeUrl);
    const { url } = await serve(storeUrl, "--checkpoint-dir", join(folder, "checkpoint"));
    const { stdout } = await callnumber(doctorAt(url), { env: home });
    expect(stdout).toMatch(/^redis:\/\/callnumber@\S+, as the coordinator at /);
    expect(stdout).not.toContain("sqlite:");
    expect(stdout).toContain("unseen-configuration");
    // The same store, for a user with more rights.
    const asOperator = await callnumber(doctorAt(url, "--store", operatorUrl), { env: home });
    expect(asOperator.stdout).toMatch(/^redis:\/\/operator@/);
    expect(asOperator.stdout).toContain(`the coordinator at ${url}, release `);
    expect(asOperator.stdout).not.toContain("unseen-configuration");
  });

  test("doctor shows what ends leasing as the coordinator knows it", async () => {
    const { storeUrl } = sharedRedis();
    await done("init", "--store", storeUrl);
    const { url } = await serve(storeUrl, "--checkpoint-dir", join(folder, "checkpoint"));
    const key = `${new URL(storeUrl).searchParams.get("prefix")}{main}:record`;
    await command({ url: sharedRedis().url }, "HSET", key, "c", "7");
    const { code, stdout } = await callnumber(doctorAt(url));
    expect(stdout).toMatch(/^ {2}REFUSED \(store_corrupt\): namespace main: /m);
    expect(code).toBe(1);
  });

  test("doctor advises what the refusal advises where the coordinator can't use its checkpoint directory", async () => {
    const directory = join(folder, "checkpoint");
    const { url } = await serve(store, "--checkpoint-dir", directory);
    await done("next", "--coordinator", url);
    await rm(directory, { recursive: true });
    await writeFile(directory, "");
    const shown = async () => (await callnumber(doctorAt(url))).stdout;
    await expect
      .poll(shown)
      .toMatch(/REFUSED \(checkpoint_unavailable\): .*\n +change +Pass one that can be written \(--checkpoint-dir\)\n/);
  });

  test("doctor fails when the running coordinator does not report its store", async () => {
    const tokensFile = join(folder, "tokens");
    await done("token", "create", "--tokens-file", tokensFile, "--role", "read", "--all-namespaces");
    const { url } = await serve(store, "--tokens-file", tokensFile);
    const message = /the coordinator at \S+ does not report its store .*Pass --store.*\(unauthorized\)/;
    await expectFailure(doctorAt(url), 1, message);
  });
});

describe("doctor", () => {
  /** A store that no coordinator serves. */
  const elsewhere = () => `sqlite:${folder}/elsewhere.db`;

  const makeDefaultStore = () => done("init", "--store", `sqlite:${folder}/callnumber/store.db`);

  /** Without both options. */
  const doctorWithoutOptions = (url: string) => {
    defaultCoordinatorAt(url);
    return callnumber(["doctor"], { env: { CALLNUMBER_COORDINATOR: undefined, XDG_STATE_HOME: folder } });
  };

  test("doctor without options asks for a store where neither a coordinator nor a default store is found", async () => {
    const { code, stdout, stderr } = await doctorWithoutOptions(NOWHERE);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(
      /^callnumber: no coordinator answers at \S+:7300 .*no default store either: pass --store \(store_not_found\)$/m,
    );
  });

  test("doctor without options examines the default store where no coordinator responds", async () => {
    await makeDefaultStore();
    const notOne = await httpServer((_, response) => response.end("not a coordinator"));
    for (const url of [NOWHERE, notOne]) {
      const { code, stdout } = await doctorWithoutOptions(url);
      expect(code).toBe(0);
      expect(stdout).toMatch(new RegExp(`^sqlite:${folder}/callnumber/store\\.db\n {2}nothing found`));
    }
  });

  test("doctor without options examines the store of the coordinator that responds, not the default store", async () => {
    await makeDefaultStore();
    const { url } = await serve(store);
    const { stdout } = await doctorWithoutOptions(url);
    expect(stdout).toContain(`${store}, as the coordinator at http://127.0.0.1:7300 sees it\n`);
  });

  test.each([
    ["does not respond", () => NOWHERE, /no coordinator answers at .*, or pass --store \(coordinator_unreachable\)$/m],
    [
      "is none",
      () => httpServer((_, response) => response.end("not a coordinator")),
      /does not report its store .*Pass --store \(invalid_response\)$/m,
    ],
  ])("doctor with a coordinator that %s fails, and never examines the default store", async (_, start, message) => {
    const env = { XDG_STATE_HOME: folder };
    await makeDefaultStore();
    const url = await start();
    await expectFailure(doctorAt(url), 1, message, env);
    await expectFailure(["doctor"], 1, message, { ...env, CALLNUMBER_COORDINATOR: url });
    // A store of the environment is not the default one.
    const named = await callnumber(doctorAt(url), { env: { ...env, CALLNUMBER_STORE: store } });
    expect(named).toMatchObject({ code: 0, stdout: expect.stringContaining(`${store}\n  nothing found`) });
  });

  test("doctor prints first that the coordinator serves another store, and none of its settings", async () => {
    const { url } = await serve(store, "--max-connections", "77");
    await done("init", "--store", elsewhere());
    const asText = await done(...doctorAt(url, "--store", elsewhere()));
    expect(asText.stdout).toMatch(
      new RegExp(`^The coordinator at ${url} serves another store: ${store}\n${elsewhere()}\n {2}nothing found`),
    );
    expect(asText.stdout).not.toMatch(/\b77\b/);
    const asJson = await jsonOf(...doctorAt(url, "--store", elsewhere()));
    expect(asJson).toMatchObject({ store: elsewhere(), servedStore: store, running: null });
    const missing = await callnumber(doctorAt(url, "--store", `sqlite:${folder}/none.db`));
    expect(missing).toMatchObject({ code: 1, stdout: expect.stringContaining(`serves another store: ${store}`) });
    expect(missing.stderr).toContain("store_not_found");
  });

  test("doctor shows the settings of the coordinator where they differ from the defaults, without secrets", async () => {
    const env = { CALLNUMBER_MAX_CONNECTIONS: "77", CALLNUMBER_COORDINATOR_NAME: "redis://me:secret@h" };
    const { url } = await serveWith(env, store);
    const { stdout } = await callnumber(doctorAt(url), { env: { CALLNUMBER_MAX_CONNECTIONS: "5555" } });
    expect(stdout).toMatch(/^ {2}max-connections +77 \(environment\)$/m);
    expect(stdout).toMatch(/^ {2}coordinator-name +redis:\/\/me:\*\*\*@h \(environment\)$/m);
    expect(stdout).toContain(`the coordinator at ${url}, release `);
    expect(stdout).not.toMatch(/max-concurrent-leases|\b5555\b|secret/);
    expect(await jsonOf(...doctorAt(url))).toMatchObject({
      running: {
        settings: expect.arrayContaining([
          { name: "max-connections", value: "77", from: "environment" },
          { name: "max-concurrent-leases", value: "64", from: "default" },
        ]),
        certificateEndsAtMs: null,
      },
      notRunning: null,
    });
  });

  test("doctor shows settings with an operator's token for all namespaces, and else the coordinator's reason", async () => {
    const tokensFile = join(folder, "tokens");
    const tokenOf = async (role: string, ...where: readonly string[]) => {
      const made = await done("token", "create", "--tokens-file", tokensFile, "--role", role, ...where);
      return replaceFile(join(folder, `${role}-${where.length}.token`), made.stdout);
    };
    const operator = await tokenOf("operator", "--all-namespaces");
    const others = [
      await tokenOf("operator", "--namespace", "main"),
      await tokenOf("read", "--all-namespaces"),
      await tokenOf("lease", "--all-namespaces"),
    ];
    const { url } = await serve(store, "--tokens-file", tokensFile);
    await done("init", "--store", elsewhere());
    const shown = await done(...doctorAt(url, "--token-file", operator));
    expect(shown.stdout).toMatch(/^ {2}tokens-file +\S+tokens \(command line\)$/m);
    const doctor = doctorAt(url, "--store", elsewhere());
    for (const file of others) {
      const { stdout } = await done(...doctor, "--token-file", file);
      expect(stdout).toMatch(/does not report its settings: .*\(forbidden\)/);
      expect(stdout).not.toContain("command line");
    }
    // Any client may come: to every address, or through a proxy to a name that was allowed.
    for (const words of [["--listen-without-tokens"], ["--allow-host", "numbers.example.org"]]) {
      const open = await serve("memory:", ...words);
      const hidden = await jsonOf(...doctorAt(open.url, "--store", elsewhere()));
      expect(hidden).toMatchObject({ running: null, notRunning: { code: "not_found" } });
    }
    expect(await jsonOf(...doctor)).toMatchObject({ running: null, notRunning: { url, code: "unauthorized" } });
  });
});

test.each([
  [14.1, undefined],
  [13.5, "expires in 13 days"],
  [1.5, "expires in 1 day,"],
  [0.5, "expires in less than a day"],
  [0, "expired on"],
])("a certificate with %d days left is described as: %s", (daysLeft, text) => {
  const expiry = nearExpiry(Date.UTC(2026, 0) + daysLeft * DAY_MS, Date.UTC(2026, 0));
  expect(expiry?.description).toEqual(text === undefined ? undefined : expect.stringContaining(text));
});

test("doctor warns of a certificate of the coordinator that expires soon", async () => {
  const authority = newAuthority();
  const ca = replaceFile(join(folder, "ca.crt"), authority.certificate, 0o644);
  const untilMs = Math.floor((Date.now() + 5.5 * DAY_MS) / 1_000) * 1_000;
  const { certificate, key } = writeTlsFiles(folder, authority.issue({ untilMs }));
  const { url } = await serve("memory:", "--tls-certificate", certificate, "--tls-key", key);
  const { code, stdout } = await callnumberProcess(doctorAt(url), { env: { NODE_EXTRA_CA_CERTS: ca } });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}unwise: The TLS certificate expires in 5 days, on 20/m);
  expect(stdout).toContain(`TLS certificate: until ${new Date(untilMs).toISOString()}`);
  expect(stdout).not.toContain("PRIVATE KEY");
  const unverified = await done(...doctorAt(url, "--store", store));
  expect(unverified.stdout).toMatch(
    /^the coordinator at .* does not report its settings: .*its certificate is from an unknown authority/m,
  );
});
