/** Requests of a command to a coordinator that is overloaded, or to another server. */
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { requestJson, requestStream } from "../src/requests.js";
import { beInCommand, httpServer } from "./commands-for-test.js";

beInCommand();

interface Given {
  readonly status: number;
  readonly body: object;
}

const overloaded = (retryAfterMs: number): Given => ({
  status: 503,
  body: { code: "overloaded", message: "no slot", retryAfterMs },
});

/** Gives one response after the other, the last one from then on. */
async function serverWith(...responses: readonly Given[]) {
  let count = 0;
  const coordinator = await httpServer((_request, response) => {
    const { status, body } = responses[Math.min(count++, responses.length - 1)] as Given;
    response.writeHead(status).end(JSON.stringify(body));
  });
  return {
    request: () => requestJson({ coordinator }, "/", z.object({ mark: z.number() })),
    requestCount: () => count,
  };
}

test("a request to an overloaded coordinator is repeated after the pause that it asks for", async () => {
  const { request, requestCount } = await serverWith(overloaded(20), overloaded(20), {
    status: 200,
    body: { mark: 7 },
  });
  const beganAtMs = performance.now();
  expect(await request()).toEqual({ mark: 7 });
  expect(requestCount()).toBe(3);
  expect(performance.now() - beganAtMs).toBeGreaterThan(30);
});

test("a request fails with the coordinator's code when the pauses are too long together", async () => {
  const { request, requestCount } = await serverWith(overloaded(0), overloaded(60_000));
  await expect(request()).rejects.toMatchObject({ code: "overloaded", message: "no slot" });
  expect(requestCount()).toBe(2);
});

test.each<[Given, string]>([
  [{ status: 503, body: { code: "store_unavailable", message: "gone", retryAfterMs: 1 } }, "store_unavailable"],
  [{ status: 403, body: { code: "forbidden", message: "no" } }, "forbidden"],
  [{ status: 503, body: {} }, "invalid_response"],
])("a request that fails with %j is not repeated", async (given, code) => {
  const { request, requestCount } = await serverWith(given);
  await expect(request()).rejects.toMatchObject({ code });
  expect(requestCount()).toBe(1);
});

test.each(["http://u:1234/S3CRET@127.0.0.1", "http://S3CRET@127.0.0.1", "http://127.0.0.1/#S3CRET"])(
  "no request is sent to %s, which may hold a password, and the message does not repeat it",
  async (coordinator) => {
    const error = await requestJson({ coordinator }, "/", z.unknown()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).not.toContain("S3CRET");
  },
);

test("the body of an error has the time limit of any other response", async () => {
  const coordinator = await httpServer((_request, response) => void response.writeHead(500).write("{"));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const fetching = vi.spyOn(globalThis, "fetch");
  onTestFinished(() => {
    vi.useRealTimers();
    fetching.mockRestore();
  });
  const requested = requestStream({ coordinator }, "/").catch((error: unknown) => error);
  await fetching.mock.results[0]?.value;
  // The head has come, and the code that waits for it has continued.
  await new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(10_000);
  expect(await requested).toMatchObject({ code: "coordinator_unreachable" });
});
