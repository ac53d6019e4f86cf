/** Leases in a running coordinator, as importers make them, over HTTP. */
import { randomUUID } from "node:crypto";
import { type Lease, ledgerIdOf, pathOf } from "@callnumber/protocol/wire";
import { expect } from "vitest";

export interface Wish {
  readonly name: string;
  readonly host?: string;
  readonly runCount?: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export async function lease(url: string, wish: Wish, namespace = "main"): Promise<Lease> {
  const { name, host = "mail-1", runCount = 1, labels = {} } = wish;
  const body = {
    runCount,
    nonce: randomUUID(),
    holder: { name, host, pid: 4711, labels },
    lastRun: null,
    receipt: null,
    sentAtMs: Date.now(),
  };
  // A young store leases two runs a second: its importers wait, and so do we.
  for (;;) {
    const response = await post(`${url}${pathOf("leases", { namespace })}`, body);
    if (response.status === 201) return (await response.json()) as Lease;
    const refusal = (await response.json()) as { code: string; retryAfterMs?: number };
    expect(refusal.code).toBe("run_ceiling_reached");
    await new Promise((resolve) => setTimeout(resolve, refusal.retryAfterMs));
  }
}

export async function report(url: string, lease: Lease, lastSequence: number | null, state: string): Promise<void> {
  const { namespace, version, firstRun, nonce } = lease;
  const path = pathOf("report", { namespace, run: ledgerIdOf(version, firstRun) });
  const response = await post(`${url}${path}`, { nonce, lastSequence, state });
  expect(response.status).toBe(200);
}

function post(url: string, body: unknown): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}
