import { expect, test } from "vitest";
import { DEFAULT_PROCESS_COUNT, parseCommandLine } from "../src/commands/import-options.js";

test("the command line has a default for everything but the sources and the archive", () => {
  expect(parseCommandLine(["a.mbox", "b.mbox", "--archive", "a.db"], {})).toEqual({
    json: false,
    asks: false,
    settings: {
      sources: ["a.mbox", "b.mbox"],
      archive: "a.db",
      coordinator: "http://127.0.0.1:7300",
      namespace: "main",
      token: undefined,
      tokenFile: undefined,
      processes: DEFAULT_PROCESS_COUNT,
      sameContent: "skip",
      weakestRule: "message-id-and-bytes",
      list: undefined,
      numbersFile: undefined,
      follow: undefined,
      waitTimeoutMs: 30_000,
      waitsForever: false,
    },
  });
});

test.each([
  [["a.mbox"], "--archive"],
  [["--archive", "a.db"], "no source"],
  [["a.mbox", "--archive", "a.db", "--processes", "0"], '--processes "0" must be a whole number from 1 to 64'],
  [["a.mbox", "--archive", "a.db", "--coordinator", "localhost:7300"], '--coordinator "localhost:7300"'],
  [["a.mbox", "--archive", "a.db", "--namespace", "Main"], '--namespace "Main"'],
  [["a.mbox", "--archive", "a.db", "--wait", "-1"], "--wait"],
  [["a.mbox", "--archive", "a.db", "--same-content", "drop"], '--same-content "drop" must be skip, number or ask'],
  [["a.mbox", "--archive", "a.db", "--same-content", "ask", "--json"], "--same-content ask and --json"],
  [["a.mbox", "--archive", "a.db", "--follow", "--same-content", "number"], "--follow needs --same-content skip"],
  [["a.mbox", "--archive", "a.db", "--same", "id"], '--same "id" must be separator, bytes, message, body'],
  [["a.mbox", "--archive", "a.db", "--list", " x"], '--list " x" must have 1 to 100 printable characters'],
  [["-", "a.mbox", "--archive", "a.db"], "- is one message on standard input: pass it alone"],
  [["-", "--archive", "a.db", "--follow"], "- is one message on standard input: pass it alone, without --follow"],
  [["a.mbox", "--archvie", "a.db"], "--archvie"],
])("the command line rejects %j and names what is wrong", (args, text) => {
  expect(() => parseCommandLine(args, {})).toThrow(
    expect.objectContaining({ code: "bad_usage", message: expect.stringContaining(text) }),
  );
});

test("the importer takes coordinator, namespace and token from the environment where there is not an option", () => {
  const environment = {
    CALLNUMBER_COORDINATOR: "http://127.0.0.1:7471",
    CALLNUMBER_NAMESPACE: "lists",
    CALLNUMBER_TOKEN: "secret",
    CALLNUMBER_TOKEN_FILE: "importer.token",
  };
  const args = ["a.mbox", "--archive", "a.db", "--namespace", "main"];
  expect(parseCommandLine(args, environment).settings).toMatchObject({
    coordinator: "http://127.0.0.1:7471",
    namespace: "main",
    token: "secret",
    tokenFile: "importer.token",
  });
});
