/**
 * One data server as far as the guard can distinguish servers: what it holds, its role, its replication ids as Redis keeps them, and
 * all it ever held, since a crash may bring any of it back. Knows nothing of networks; links between servers stand in replication.ts.
 */
import {
  markIdOf,
  type NamespaceState,
  type Observed,
  type ObservedFields,
  type ObservedKeys,
  storedFields,
} from "./product.js";

/** The keys of the namespace and of the control. Never changed in place: what was once held can come back. */
export interface Contents {
  /** The record, or undefined when the key is not there. */
  readonly record: ObservedFields | undefined;
  readonly expires: boolean;
  readonly hasLedger: boolean;
  readonly ledgerMark: number;
  /** The control: a plain counter next to the record, raised with INCR. */
  readonly counter: number;
}

export const NOTHING: Contents = { record: undefined, expires: false, hasLedger: false, ledgerMark: 0, counter: 0 };

/** What a disk holds: the data, where in which stream of writes they stand (an RDB keeps that, an AOF does not), and the configuration. */
export interface Saved {
  readonly contents: Contents;
  readonly replId: string;
  readonly offset: number;
  /** Index of the server that it follows; undefined for a master. */
  readonly follows: number | undefined;
}

export const EMPTY_DISK: Saved = { contents: NOTHING, replId: "", offset: 0, follows: undefined };

export type LinkState = "none" | "asking" | "loading" | "up";

export class Server {
  runId = "";
  /** Name of the stream of writes that this server makes or follows; the one before, and up to where that one is the same. */
  replId = "";
  replId2 = "-";
  secondOffset = -1;
  syncFull = 0;
  syncPartial = 0;
  role: "master" | "slave" = "master";
  isUp = true;
  clockAheadMs = 0;

  /** The server that it follows, whether reached or not. */
  follows: number | undefined;
  link: LinkState = "none";
  /** Changes whenever the link breaks: what was in flight on the old one is lost. */
  linkLife = 0;
  isReplicating = false;
  /** Offsets that attached replicas have acknowledged, -1 before the first; undefined for servers that are not attached. */
  readonly acknowledged: (number | undefined)[] = [];

  contents: Contents = NOTHING;
  offset = 0;
  /** What was held after each offset from `logStart` on: what a partial resynchronization can bring. */
  log: Contents[] = [NOTHING];
  logStart = 0;
  /** The greatest run that a step ever leased here, whether an importer received it or not. */
  markLeased = 0;
  /** The greatest generation that it ever held, whether it remembers or not. */
  generationHeard = 0;
  /** All that was ever durable, oldest first. */
  past: Saved[] = [];

  /** `seenEpoch`: what scripts get to see of the epoch; all of it, but for variants. */
  constructor(
    readonly index: number,
    readonly newId: () => string,
    readonly seenEpoch: (epoch: string) => string,
  ) {
    this.runId = newId();
    this.replId = newId();
  }

  /** INFO and the keys, as a script sees them. */
  found(nowMs: number): Observed {
    const { role, epoch, attachedCount: connectedReplicas } = this;
    return {
      keys: this.#keys(),
      server: { timeMs: nowMs + this.clockAheadMs, role, epoch, connectedReplicas },
    };
  }

  get epoch(): string {
    return this.seenEpoch([this.runId, this.replId, this.syncFull, this.syncPartial].join(":"));
  }

  get attachedCount(): number {
    return this.acknowledged.filter((offset) => offset !== undefined).length;
  }

  acknowledgedCount(offset: number): number {
    return this.acknowledged.filter((acknowledged) => acknowledged !== undefined && acknowledged >= offset).length;
  }

  /** What a script writes: the record without a time to live, and for a lease its ledger entry. */
  execute(record: NamespaceState, isLease: boolean): void {
    const markId = markIdOf(record);
    if (isLease) this.markLeased = Math.max(this.markLeased, markId);
    const { ledgerMark, hasLedger } = this.contents;
    this.write({
      ...this.contents,
      record: storedFields(record),
      expires: false,
      hasLedger: hasLedger || isLease,
      ledgerMark: isLease ? Math.max(ledgerMark, markId) : ledgerMark,
    });
  }

  /** A write of its own, or one from its master. */
  write(contents: Contents): void {
    this.contents = contents;
    this.offset++;
    this.log.push(contents);
    this.#keep();
  }

  /** A copy of everything another server holds. */
  load({ contents, replId, offset }: Saved): void {
    this.contents = contents;
    this.replId = replId;
    this.replId2 = "-";
    this.secondOffset = -1;
    this.#beginLogAt(offset);
    this.#keep();
  }

  /** REPLICAOF NO ONE: a new stream, which is the old one up to here. */
  beginStream(): void {
    this.replId2 = this.replId;
    this.secondOffset = this.offset + 1;
    this.replId = this.newId();
  }

  /** A partial resynchronization was accepted: its stream goes on under another name. */
  adoptStream(replId: string): boolean {
    if (this.replId === replId) return false;
    this.replId2 = this.replId;
    this.secondOffset = this.offset + 1;
    this.replId = replId;
    return true;
  }

  /** The process starts from a disk. `remembersStream`: an RDB records its stream and the offset in it, an AOF does not. */
  start(saved: Saved, role: "master" | "slave", remembersStream: boolean): void {
    this.runId = this.newId();
    this.syncFull = 0;
    this.syncPartial = 0;
    this.role = role;
    this.contents = saved.contents;
    this.replId2 = "-";
    this.secondOffset = -1;
    this.replId = this.newId();
    if (remembersStream && role === "slave") this.replId = saved.replId;
    if (remembersStream && role === "master") {
      this.replId2 = saved.replId;
      this.secondOffset = saved.offset + 1;
    }
    this.#beginLogAt(remembersStream ? saved.offset : 0);
    this.isUp = true;
  }

  /** Whether Redis would go on from a replica's position instead of copying everything. */
  continuesFor(replica: Server): boolean {
    const isSameStream =
      replica.replId === this.replId || (replica.replId === this.replId2 && replica.offset < this.secondOffset);
    return isSameStream && replica.offset >= this.logStart && replica.offset <= this.offset;
  }

  get generation(): number {
    return Number(this.contents.record?.["g"] ?? 0);
  }

  saved(): Saved {
    const { contents, replId, offset, follows } = this;
    return { contents, replId, offset, follows };
  }

  #keys(): ObservedKeys {
    const { record, expires, hasLedger, ledgerMark } = this.contents;
    return {
      record: record === undefined ? "none" : "hash",
      fields: record ?? {},
      expires,
      ledger: hasLedger ? "stream" : "none",
      ledgerMark,
      holders: hasLedger ? "hash" : "none",
    };
  }

  #keep(): void {
    this.past.push(this.saved());
    this.generationHeard = Math.max(this.generationHeard, this.generation);
  }

  #beginLogAt(offset: number): void {
    this.offset = offset;
    this.log = [this.contents];
    this.logStart = offset;
  }
}
