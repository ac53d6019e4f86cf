/** Evidence that is genuine, for rows that show it where it proves nothing. */
import { Coordinator } from "../../packages/coordinator/src/coordinator.js";
import { MemoryStore } from "../../packages/coordinator/src/stores/memory-store.js";
import { ledgerIdOf } from "../../packages/protocol/src/wire.js";
import { sendBytes } from "./raw-client.js";
import { leaseBody, leasesOf, request, rightLease, type Target } from "./row.js";

/** The namespace beside `main`, which has leased far beyond it. */
export const OTHER_NAMESPACE = "elsewhere";
export const OTHER_FIRST_RUN = 5_000_000;
const EARLIER_FIRST_RUN = 6_000_000;

export interface Evidence {
  readonly lastRun: number;
  readonly receipt: string;
}

interface Granted {
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  readonly receipt: string;
}

/** A lease as an importer gets it; @throws Error when it does not. */
export async function leaseIn(target: Target, namespace: string, changed: object = {}): Promise<Evidence> {
  const bytes = request(target, { path: leasesOf(namespace), body: leaseBody(changed) });
  const { text, statuses } = await sendBytes(target, [bytes]);
  if (statuses.join() !== "201") throw new Error(`no lease in ${namespace}: ${bodyIn(text)}`);
  return evidenceOf(JSON.parse(bodyIn(text)) as Granted);
}

/** Of the same namespace, by its name, in the store that it had before: that one is lost, and its receipts are worth nothing any more. */
export async function leaseOfEarlierStore(): Promise<Evidence> {
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "earlier" });
  await coordinator.initNamespace("main", { firstRun: EARLIER_FIRST_RUN });
  return evidenceOf(await coordinator.lease("main", rightLease()));
}

/** Of an answer with a body of JSON. */
export function bodyIn(text: string): string {
  return text.slice(text.indexOf("{"));
}

function evidenceOf({ version, firstRun, runCount, receipt }: Granted): Evidence {
  return { lastRun: ledgerIdOf(version, firstRun + runCount - 1), receipt };
}
