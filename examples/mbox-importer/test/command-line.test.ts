import { describe, expect, it } from "vitest";
import { DEFAULT_PROCESS_COUNT, parseCommandLine } from "../src/command-line.js";
import { HELP_TEXT } from "../src/help-text.js";
import { runImporter } from "./importing.js";

const parse = (...args: string[]) => parseCommandLine(args, {});

describe("the command line", () => {
  it("has a default for everything but the sources and the archive", () => {
    expect(parse("a.mbox", "b.mbox", "--archive", "a.db")).toEqual({
      help: false,
      json: false,
      settings: {
        sources: ["a.mbox", "b.mbox"],
        archive: "a.db",
        coordinator: "http://127.0.0.1:7300",
        namespace: "main",
        token: undefined,
        tokenFile: undefined,
        processes: DEFAULT_PROCESS_COUNT,
        refill: "ahead",
        waitTimeoutMs: 30_000,
      },
    });
  });

  it.each([
    [["a.mbox"], "--archive"],
    [["--archive", "a.db"], "no source"],
    [["a.mbox", "--archive", "a.db", "--processes", "0"], '--processes "0" must be a whole number from 1 to 64'],
    [["a.mbox", "--archive", "a.db", "--processes", "two"], '--processes "two"'],
    [["a.mbox", "--archive", "a.db", "--coordinator", "localhost:7300"], '--coordinator "localhost:7300"'],
    [["a.mbox", "--archive", "a.db", "--namespace", "Main"], '--namespace "Main"'],
    [["a.mbox", "--archive", "a.db", "--refill", "never"], '--refill "never" must be ahead or when_empty'],
    [["a.mbox", "--archive", "a.db", "--wait", "-1"], "--wait"],
    [["a.mbox", "--archvie", "a.db"], "--archvie"],
  ])("refuses %j and names what is wrong", (args, words) => {
    expect(() => parse(...args)).toThrow(
      expect.objectContaining({ code: "bad_usage", message: expect.stringContaining(words) }),
    );
  });

  it("takes coordinator, namespace and token from the environment, and the options before it", () => {
    const environment = {
      CALLNUMBER_COORDINATOR: "http://127.0.0.1:7471",
      CALLNUMBER_NAMESPACE: "lists",
      CALLNUMBER_TOKEN: "secret",
      CALLNUMBER_TOKEN_FILE: "importer.token",
    };
    const { settings } = parseCommandLine(["a.mbox", "--archive", "a.db"], environment);
    expect(settings).toMatchObject({
      coordinator: "http://127.0.0.1:7471",
      namespace: "lists",
      token: "secret",
      tokenFile: "importer.token",
    });
    const given = parseCommandLine(["a.mbox", "--archive", "a.db", "--namespace", "main"], environment);
    expect(given.settings).toMatchObject({ coordinator: "http://127.0.0.1:7471", namespace: "main" });
  });

  it("ends with 2 when it is wrong, and with 1 when a source is", async () => {
    expect(await runImporter("a.mbox")).toMatchObject({ status: 2, summary: undefined });
    const missing = await runImporter("no-such.mbox", "--archive", "no-such.db");
    expect(missing).toMatchObject({ status: 1, stderr: expect.stringContaining("no-such.mbox") });
  });

  it("teaches every option", () => {
    for (const option of ["archive", "coordinator", "namespace", "processes", "refill", "wait", "json", "help"]) {
      expect(HELP_TEXT).toContain(`--${option}`);
    }
  });
});
