/** A Redis Cluster as one of its nodes sees it: CLUSTER NODES, read. Changes nothing. */
import { command } from "./redis-command.js";
import { asClusterMaker } from "./shipped-users.js";
import type { RedisServer } from "./test-redis.js";

export interface NodeSeen {
  readonly node: RedisServer;
  readonly id: string;
  /** Of the master that it follows, or undefined for a master. */
  readonly masterId: string | undefined;
  /** The one who was asked holds it to be down, or hears so from the others. */
  readonly isDown: boolean;
  /** First and last slot of each range it owns. */
  readonly slots: readonly (readonly [first: number, last: number])[];
}

/** All of `nodes` that `asked` knows. */
export async function viewOf(asked: RedisServer, nodes: readonly RedisServer[]): Promise<NodeSeen[]> {
  const text = String(await command(asClusterMaker(asked), "CLUSTER", "NODES"));
  return text.split("\n").flatMap((line) => nodeIn(line, asked, nodes));
}

/** @throws Error when no one owns the slot. */
export function ownerIn(view: readonly NodeSeen[], slot: number): RedisServer {
  const owner = view.find(({ slots }) => slots.some(([first, last]) => first <= slot && slot <= last));
  if (!owner) throw new Error(`no node owns slot ${slot}`);
  return owner.node;
}

export function replicasIn(view: readonly NodeSeen[], master: RedisServer): RedisServer[] {
  const { id } = view.find(({ node }) => node === master) ?? {};
  return view
    .filter(({ masterId, isDown }) => masterId !== undefined && masterId === id && !isDown)
    .map(({ node }) => node);
}

/** The same text for the same view, whoever was asked. */
export function viewText(view: readonly NodeSeen[]): string {
  const lines = view.map(({ id, masterId = "-", isDown, slots }) => `${id} ${masterId} ${isDown} ${slots.join(" ")}`);
  return lines.sort().join("\n");
}

export async function slotOf(slotOrKey: number | string, asked: RedisServer): Promise<number> {
  return typeof slotOrKey === "number" ? slotOrKey : Number(await command(asked, "CLUSTER", "KEYSLOT", slotOrKey));
}

function nodeIn(line: string, asked: RedisServer, nodes: readonly RedisServer[]): NodeSeen[] {
  const [id = "", address = "", flagText = "", masterId = "", , , , , ...ranges] = line.split(" ");
  const flags = flagText.split(",");
  const [, host, port] = /^(.*):(\d+)@/.exec(address) ?? [];
  // A node that no one has talked to yet does not know its own address.
  const node = nodes.find((one) => `${one.port}` === port && one.host === (host || asked.host));
  if (!node) return [];
  return [
    {
      node,
      id,
      masterId: masterId === "-" ? undefined : masterId,
      isDown: flags.some((flag) => flag.startsWith("fail")),
      // A range in brackets is a slot on its way to another node.
      slots: ranges.filter((range) => !range.startsWith("[")).map(slotRange),
    },
  ];
}

function slotRange(text: string): [number, number] {
  const [first = Number.NaN, last = first] = text.split("-").map(Number);
  return [first, last];
}
