/** Which connections end because what comes on them is no request. */
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { hasTooMuchWithoutRequest } from "../src/http/without-request.js";

const IDLE_MAX_MS = 1_000;
const NOW_MS = 10_000;

interface Wishes {
  readonly bytesRead?: number;
  readonly bytesBefore?: number;
  readonly isLetIn?: boolean;
  readonly underWayCount?: number;
  readonly answeredAtMs?: number | undefined;
}

function ends({ bytesRead = 0, ...wishes }: Wishes): boolean {
  const socket = Object.defineProperty(new Socket(), "bytesRead", { value: bytesRead });
  const quiet = { bytesBefore: 0, isLetIn: false, underWayCount: 0, answeredAtMs: NOW_MS };
  return hasTooMuchWithoutRequest({ socket, ...quiet, ...wishes }, IDLE_MAX_MS, NOW_MS);
}

test("a stranger's, on which more came since its newest request than a request can hold", () => {
  expect(ends({ bytesRead: 65_536 })).toBe(false);
  expect(ends({ bytesRead: 65_537 })).toBe(true);
  expect(ends({ bytesRead: 65_537, answeredAtMs: undefined })).toBe(true);
  expect(ends({ bytesRead: 65_537, underWayCount: 1 })).toBe(true);
  expect(ends({ bytesRead: 900_000, bytesBefore: 899_000 })).toBe(false);
  expect(ends({ bytesRead: 900_000, isLetIn: true })).toBe(false);
});

test("anybody's, on which no request was under way for too long", () => {
  expect(ends({ answeredAtMs: NOW_MS - 1_000, isLetIn: true })).toBe(false);
  expect(ends({ answeredAtMs: NOW_MS - 1_001, isLetIn: true })).toBe(true);
  expect(ends({ answeredAtMs: NOW_MS - 1_001, underWayCount: 1 })).toBe(false);
  // One that never asked is the business of those who wait for heads.
  expect(ends({ answeredAtMs: undefined })).toBe(false);
});
