/**
 * A coordinator that answers one lease request of each client with a neighbor of a lease: each field of the schema broken in each way,
 * and the JSON and HTTP around it. The client generates numbers only from a lease that it may use, or fails with a code, and no number
 * comes twice.
 * Guarantees: G9 (docs/guarantees.md).
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { type Lease, type LeaseRequest, ledgerIdOf } from "@callnumber/protocol/api";
import { decodeCallNumber, fromNumber, RUN_COUNT, RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { leaseSchema } from "@callnumber/protocol/schemas";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../src/index.js";

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** What can be read of it, where that is not the body. */
  readonly readable?: string;
  /** The connection ends before the body does. */
  readonly isCut?: boolean;
}

/** `previous`: what the same client got before; the lease itself when it got none. */
type Neighbor = readonly [name: string, answer: (lease: Lease, previous: Lease) => Answer];

interface Property {
  readonly type: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

const FIELDS = Object.entries(
  (leaseSchema.toJSONSchema() as unknown as { properties: Readonly<Record<keyof Lease, Property>> }).properties,
) as [keyof Lease, Property][];

const json = (value: unknown): Answer => ({ body: JSON.stringify(value) });

/** Next to the right value: of another type, out of range, or nearly right. As JSON, valid or not. */
function valuesNextTo(right: string | number, { type, minimum = 0, maximum = 0 }: Property): readonly string[] {
  const text = String(right);
  const others = [null, true, [], {}, [right], { value: right }, ""];
  if (type === "string") {
    const near = [
      text.slice(1),
      text.slice(0, -1),
      `${text}x`,
      ` ${text}`,
      `${text}\n`,
      `${text}=`,
      text.toUpperCase(),
    ];
    const odd = [`${text}\0`, `${text}\u001b[2J`, `${text}é`, "s".repeat(100), "s".repeat(60_000), 7];
    return [...others, ...near, ...odd].map((value) => JSON.stringify(value));
  }
  const number = Number(right);
  const near = [number - 1, number + 1, number + 0.5, -number, 2 ** 32 + number, 2 ** 53];
  const bounds = [minimum - 1, minimum, minimum + 0.5, maximum - 1, maximum, maximum + 1];
  const asText = [text, "NaN", "Infinity", `0x${text}`];
  const values = [...others, ...near, ...bounds, ...asText].map((value) => JSON.stringify(value));
  return [...values, "NaN", "-Infinity", "1e400", "1e-400", "-0", `0${text}`, `+${text}`, `${text}n`];
}

/** Of one field. `count`: as many values as stand next to any right one. */
function neighborsOf([field, property]: [keyof Lease, Property]): readonly Neighbor[] {
  const withValue = (lease: Lease, value: string): Answer => {
    const members = Object.entries(lease).map(
      ([name, right]) => `"${name}":${name === field ? value : JSON.stringify(right)}`,
    );
    return { body: `{${members.join(",")}}` };
  };
  const { length: count } = valuesNextTo(1, property);
  return [
    ...Array.from(
      { length: count },
      (_, index): Neighbor => [
        `${field}, value ${index}`,
        (lease) => withValue(lease, valuesNextTo(lease[field], property)[index] as string),
      ],
    ),
    [`${field} missing`, (lease) => json({ ...lease, [field]: undefined })],
    [`${field} of the lease before`, (lease, previous) => json({ ...lease, [field]: previous[field] })],
    [`${field} twice, first wrong`, (lease) => ({ body: JSON.stringify(lease).replace("{", `{"${field}":null,`) })],
    [`${field} twice, then wrong`, (lease) => ({ body: JSON.stringify(lease).replace(/}$/, `,"${field}":null}`) })],
  ];
}

const STATUSES = [200, 202, 203, 204, 206, 226, 300, 301, 302, 303, 304, 307, 308, 400, 404, 409, 500, 501, 502, 503];
const ELSEWHERE = "/elsewhere";

const NEIGHBORS: readonly Neighbor[] = [
  ["a lease", json],
  ["the lease before", (_, previous) => json(previous)],
  ["a lease that begins before the last run", (lease, { firstRun }) => json({ ...lease, firstRun: firstRun - 1 })],
  ["the next version", (lease) => json({ ...lease, version: lease.version + 1 })],
  ["a ledger id as run", (lease) => json({ ...lease, firstRun: ledgerIdOf(1, lease.firstRun) })],
  ["the last run", (lease) => json({ ...lease, firstRun: RUN_MAX, runCount: 1 })],
  ["one run too many at the end", (lease) => json({ ...lease, firstRun: RUN_MAX, runCount: 2 })],
  ["one run more than asked", (lease) => json({ ...lease, runCount: lease.runCount + 1 })],
  ["a further field", (lease) => json({ ...lease, more: 1 })],
  ["a prototype", (lease) => ({ body: JSON.stringify(lease).replace("{", '{"__proto__":{"firstRun":1},') })],
  ["fields in the prototype", (lease) => ({ body: `{"__proto__":${JSON.stringify(lease)}}` })],
  ["a list", (lease) => json([lease])],
  ["a lease inside", (lease) => json({ lease })],
  ["its text", (lease) => json(JSON.stringify(lease))],
  ["null", () => json(null)],
  ["two leases", (lease) => ({ body: JSON.stringify(lease).repeat(2) })],
  ["a BOM", (lease) => ({ body: `\ufeff${JSON.stringify(lease)}`, readable: JSON.stringify(lease) })],
  ["two BOMs", (lease) => ({ body: `\ufeff\ufeff${JSON.stringify(lease)}` })],
  ["white space", (lease) => ({ body: ` \r\n${JSON.stringify(lease, null, 2)}\n` })],
  ["a NUL at the end", (lease) => ({ body: `${JSON.stringify(lease)}\0` })],
  ["UTF-16", (lease) => ({ body: Buffer.from(JSON.stringify(lease), "utf16le"), readable: "" })],
  ["a comma too many", (lease) => ({ body: JSON.stringify(lease).replace("}", ",}") })],
  ["text/html", (lease) => ({ ...json(lease), headers: { "content-type": "text/html" } })],
  [
    "gzip",
    (lease) => ({
      body: gzipSync(JSON.stringify(lease)),
      readable: JSON.stringify(lease),
      headers: { "content-encoding": "gzip" },
    }),
  ],
  ["gzip that is none", (lease) => ({ ...json(lease), readable: "", headers: { "content-encoding": "gzip" } })],
  ["a cut connection", (lease) => ({ ...json(lease), readable: "", isCut: true })],
  ...STATUSES.map(
    (status): Neighbor => [
      `status ${status}`,
      (lease) => ({
        ...json(lease),
        status,
        headers: { location: ELSEWHERE },
        ...(status === 204 ? { readable: "" } : {}),
      }),
    ],
  ),
  ...FIELDS.flatMap(neighborsOf),
];
const TRUNCATED = Array.from({ length: 32 }, (_, index): Neighbor => {
  const cut = 7 * index + 1;
  return [`a lease without its last ${cut} characters`, (lease) => ({ body: JSON.stringify(lease).slice(0, -cut) })];
});

/** What a coordinator knows of one client. */
interface Known {
  readonly index: number;
  readonly neighbor: Neighbor;
  /** The lease that is answered by the neighbor: the first or the second. */
  readonly at: 1 | 2;
  readonly grants: Lease[];
  requestCount: number;
  /** Whether the schema takes the neighbor. */
  isLease: boolean;
  /** Whether the neighbor was a lease that the client may use. */
  isNeighborGranted: boolean;
}

/** What the schema takes of an answer. */
function leaseIn({ status = 201, body, readable = String(body) }: Answer): Lease | undefined {
  if (status < 200 || status > 299) return undefined;
  try {
    return leaseSchema.safeParse(JSON.parse(readable)).data;
  } catch {
    return undefined;
  }
}

/** Whether a client may use a lease, by its request and what it had before. */
function mayUse(lease: Lease, request: LeaseRequest, had: Lease | undefined): boolean {
  const isAsked = lease.nonce === request.nonce && lease.namespace === "main" && lease.runCount <= request.runCount;
  const isInSpace = lease.firstRun + lease.runCount <= RUN_COUNT && /^[!-~]{1,99}$/.test(lease.storeId);
  const isNext = had === undefined || lastRunOf(had) < ledgerIdOf(lease.version, lease.firstRun);
  return isAsked && isInSpace && isNext && (had === undefined || had.storeId === lease.storeId);
}

const lastRunOf = ({ version, firstRun, runCount }: Lease) => ledgerIdOf(version, firstRun + runCount - 1);

test("the client generates each number once, from a lease that it may use, whatever is next to a lease", async () => {
  const clients = new Map<string, Known>();
  const faults = new Set<string>();
  let mark = 10_000;
  const server = createServer(async (message, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    if (message.url === ELSEWHERE) faults.add("a redirect was followed");
    if (!message.url?.endsWith("/leases")) return void response.end("{}");
    const request = JSON.parse(Buffer.concat(chunks).toString()) as LeaseRequest;
    const { holder, nonce, runCount, lastRun, proof } = request;
    const known = clients.get(holder.name) as Known;
    const had = known.grants.at(-1);
    if (lastRun !== (had ? lastRunOf(had) : null) || proof !== (had?.proof ?? null))
      faults.add(`${holder.name}: evidence`);
    // Each client has a store of its own: some neighbors are the same run for all.
    mark += 1_000;
    const place = { namespace: "main", storeId: `store-${known.index}`, version: 1, firstRun: mark, runCount };
    const lease = { ...place, leasedAtMs: 1_795_000_000_000, nonce, proof: String(mark).padStart(43, "r") };
    const isNeighbor = ++known.requestCount === known.at;
    const answer = isNeighbor ? known.neighbor[1](lease, had ?? lease) : json(lease);
    const read = leaseIn(answer);
    const isGrant = read !== undefined && mayUse(read, request, had);
    if (isGrant) known.grants.push(read);
    if (isNeighbor) Object.assign(known, { isLease: read !== undefined, isNeighborGranted: isGrant });
    const { status = 201, headers, body, isCut } = answer;
    const length = isCut ? { "content-length": Buffer.byteLength(body) + 1 } : {};
    response.writeHead(status, { "content-type": "application/json", ...headers, ...length });
    if (isCut) response.write(body, () => response.destroy());
    else response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  const coordinator = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const codes = new Set<unknown>();

  async function play(neighbor: Neighbor, at: 1 | 2): Promise<void> {
    const name = `${neighbor[0]} at ${at}`;
    const known: Known = {
      index: clients.size,
      neighbor,
      at,
      grants: [],
      requestCount: 0,
      isLease: false,
      isNeighborGranted: false,
    };
    clients.set(name, known);
    const limits = { waitTimeoutMs: 3_600_000, requestTimeoutMs: 600_000 };
    // Hundreds start at once: on a busy machine each would warn.
    const hooks = { onRetry: () => {} };
    // The first request is for two runs, so that one fewer and one more are near.
    const wanted = { prefetch: false, spareRuns: 2 - at } as const;
    await using client = createClient({ coordinator, holder: { name }, hooks, ...wanted, ...limits });
    const made = new Float64Array(2 * SEQUENCE_COUNT + 1);
    let madeCount = 0;
    const used = new Set<Lease | undefined>();
    const take = async (count: number): Promise<void> => {
      const numbers = new Float64Array(count);
      try {
        await client.fillNumbers(numbers);
      } catch (error) {
        codes.add((error as { code?: unknown }).code);
        return;
      }
      made.set(numbers, madeCount);
      madeCount += count;
      for (const number of [numbers[0], numbers[count - 1]] as number[]) {
        const { version, run } = decodeCallNumber(fromNumber(number));
        const ledgerId = ledgerIdOf(version, run);
        const grant = known.grants.find(
          (lease) => ledgerIdOf(lease.version, lease.firstRun) <= ledgerId && ledgerId <= lastRunOf(lease),
        );
        used.add(grant);
        if (grant === undefined) faults.add(`${name}: a number of run ${run}, which it may not use`);
      }
    };
    if (at === 2) await take(SEQUENCE_COUNT);
    await take(1);
    if (known.isNeighborGranted && !used.has(known.grants[at - 1])) faults.add(`${name}: a lease that it did not use`);
    // What comes after the neighbor; the lease after it, where it was used.
    await take(at === 2 && known.isNeighborGranted ? SEQUENCE_COUNT : 1);
    const sorted = made.subarray(0, madeCount).sort();
    if (sorted.some((number, index) => number === sorted[index - 1])) faults.add(`${name}: a number twice`);
  }

  await Promise.all([...NEIGHBORS, ...TRUNCATED].map((neighbor) => play(neighbor, 1)));
  // What is no lease at all needs no history.
  const leases = [...clients.values()].filter(({ isLease }) => isLease);
  await Promise.all(leases.map(({ neighbor }) => play(neighbor, 2)));
  expect([...faults]).toEqual([]);
  expect([...codes].sort()).toEqual(["invalid_response", "run_not_increasing", "store_mismatch"]);
  const grantedCount = [...clients.values()].filter(({ isNeighborGranted }) => isNeighborGranted).length;
  expect(grantedCount).toBeGreaterThan(50);
  expect(clients.size - grantedCount).toBeGreaterThan(250);
});
