/** What an archive's ledger holds before the story begins: leases of an importer that has ended, each used to its end. */
import { randomBytes } from "node:crypto";
import { SEQUENCE_MAX } from "@callnumber/protocol/codec";
import { type Lease, ledgerIdOf, pathOf } from "@callnumber/protocol/wire";

const HOLDER = { name: "backlog", host: "old-host", pid: 1, labels: { archive: "lists" } };
const CALLERS = 64;

export async function leaseBacklog(url: string, namespace: string, leaseCount: number): Promise<void> {
  let left = leaseCount;
  const caller = async () => {
    while (left-- > 0) await useUp(url, namespace);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

async function useUp(url: string, namespace: string): Promise<void> {
  const nonce = randomBytes(15).toString("base64url");
  const request = { runCount: 1, nonce, holder: HOLDER, lastRun: null, receipt: null, sentAtMs: Date.now() };
  const { version, firstRun } = (await post(url + pathOf("leases", { namespace }), request)) as Lease;
  const run = ledgerIdOf(version, firstRun);
  await post(url + pathOf("report", { namespace, run }), { nonce, lastSequence: SEQUENCE_MAX, state: "exhausted" });
}

async function post(address: string, body: object): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${address} answered ${answer.status}: ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}
