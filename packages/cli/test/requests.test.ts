/** What a command does when the coordinator has no place for its question: by a server that the test plays. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { requestJson, requestStream } from "../src/requests.js";
import { beInCommand } from "./in-command.js";

beInCommand();

interface Answer {
  readonly status: number;
  readonly body: object;
}

const overloaded = (retryAfterMs: number): Answer => ({
  status: 503,
  body: { code: "overloaded", message: "no place", retryAfterMs },
});

/** Answers one after the other, the last one from then on. */
async function answering(...answers: readonly Answer[]) {
  let askedCount = 0;
  const server = createServer((_request, response) => {
    const { status, body } = answers[Math.min(askedCount++, answers.length - 1)] as Answer;
    response.writeHead(status).end(JSON.stringify(body));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    ask: () =>
      requestJson(
        { coordinator: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
        "/",
        z.object({ mark: z.number() }),
      ),
    askedCount: () => askedCount,
  };
}

test("it asks again after the pause that it is told", async () => {
  const { ask, askedCount } = await answering(overloaded(20), overloaded(20), { status: 200, body: { mark: 7 } });
  const beganAtMs = performance.now();
  expect(await ask()).toEqual({ mark: 7 });
  expect(askedCount()).toBe(3);
  expect(performance.now() - beganAtMs).toBeGreaterThan(30);
});

test("it gives up with the reason when the pauses are too long together", async () => {
  const { ask, askedCount } = await answering(overloaded(0), overloaded(60_000));
  await expect(ask()).rejects.toMatchObject({ code: "overloaded", message: "no place" });
  expect(askedCount()).toBe(2);
});

test.each(["http://u:1234/S3CRET@127.0.0.1", "http://S3CRET@127.0.0.1", "http://127.0.0.1/#S3CRET"])(
  "it asks nobody at %s, which may hold a password, and does not repeat it",
  async (coordinator) => {
    const error = await requestJson({ coordinator }, "/", z.unknown()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).not.toContain("S3CRET");
  },
);

test("it asks once where the refusal will stay, or is none of a coordinator", async () => {
  for (const answer of [
    { status: 503, body: { code: "store_unavailable", message: "gone", retryAfterMs: 1 } },
    { status: 403, body: { code: "forbidden", message: "no" } },
    { status: 503, body: {} },
  ]) {
    const { ask, askedCount } = await answering(answer);
    await expect(ask()).rejects.toThrow();
    expect(askedCount()).toBe(1);
  }
});

test("a refusal that drips has the time of any other answer", async () => {
  const server = createServer((_request, response) => void response.writeHead(500).write("{"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const fetching = vi.spyOn(globalThis, "fetch");
  onTestFinished(() => {
    vi.useRealTimers();
    fetching.mockRestore();
    server.closeAllConnections();
    server.close();
  });
  const coordinator = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const asking = requestStream({ coordinator }, "/").catch((error: unknown) => error);
  await fetching.mock.results[0]?.value;
  // Its first words have come, and whoever waits for them has gone on.
  await new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(10_000);
  expect(await asking).toMatchObject({ code: "coordinator_unreachable" });
});
