/**
 * One data server as far as the guard can tell servers apart: what it holds, its role, its replication ids as Redis keeps them, and
 * all it ever held, since a crash may bring any of it back. Knows nothing of networks; links between servers stand in replication.ts.
 */
import { isRefusal, keptFields } from "./product.js";
export const NOTHING = { record: undefined, expires: false, hasLedger: false, ledgerMark: 0, counter: 0 };
export const EMPTY_DISK = { contents: NOTHING, replId: "", offset: 0, follows: undefined };
export class Server {
    index;
    newId;
    toldEpoch;
    runId = "";
    /** Name of the stream of writes that this server makes or follows; the one before, and up to where that one is the same. */
    replId = "";
    replId2 = "-";
    secondOffset = -1;
    syncFull = 0;
    syncPartial = 0;
    role = "master";
    isUp = true;
    clockAheadMs = 0;
    /** The server that it follows, whether reached or not. */
    follows;
    link = "none";
    /** Changes whenever the link breaks: what was under way on the old one is lost. */
    linkLife = 0;
    isReplicating = false;
    /** Offsets that attached replicas have acknowledged, -1 before the first; undefined for servers that are not attached. */
    acknowledged = [];
    contents = NOTHING;
    offset = 0;
    /** What was held after each offset from `logStart` on: what a partial resynchronisation can bring. */
    log = [NOTHING];
    logStart = 0;
    /** The greatest mark that a step ever made here. */
    markReached = 0;
    /** The greatest generation that it ever held, whether it remembers or not. */
    generationHeard = 0;
    /** All that was ever durable, oldest first. */
    past = [];
    /** `toldEpoch`: what scripts get to see of the epoch; all of it, but for variants. */
    constructor(index, newId, toldEpoch) {
        this.index = index;
        this.newId = newId;
        this.toldEpoch = toldEpoch;
        this.runId = newId();
        this.replId = newId();
    }
    /** INFO, as a script sees it. */
    found(nowMs) {
        return {
            timeMs: nowMs + this.clockAheadMs,
            role: this.role,
            epoch: this.epoch,
            connectedReplicas: this.attachedCount,
        };
    }
    get epoch() {
        return this.toldEpoch([this.runId, this.replId, this.syncFull, this.syncPartial].join(":"));
    }
    get attachedCount() {
        return this.acknowledged.filter((offset) => offset !== undefined).length;
    }
    acknowledgedCount(offset) {
        return this.acknowledged.filter((acknowledged) => acknowledged !== undefined && acknowledged >= offset).length;
    }
    /** What a script decides; what it writes is written. */
    execute(decision, isLease, markId) {
        if (isRefusal(decision))
            return;
        this.markReached = Math.max(this.markReached, decision.record.mark);
        const { ledgerMark, hasLedger } = this.contents;
        this.write({
            ...this.contents,
            record: keptFields(decision.record),
            // With a time to live every step is refused but `recover`, which makes the key anew.
            expires: false,
            hasLedger: hasLedger || isLease,
            ledgerMark: isLease ? Math.max(ledgerMark, markId) : ledgerMark,
        });
    }
    keys() {
        const { record, expires, hasLedger, ledgerMark } = this.contents;
        return {
            record: record === undefined ? "none" : "hash",
            fields: record ?? {},
            expires,
            ledger: hasLedger ? "stream" : "none",
            ledgerMark,
            holders: "none",
        };
    }
    /** A write of its own, or one from its master. */
    write(contents) {
        this.contents = contents;
        this.offset++;
        this.log.push(contents);
        this.#keep();
    }
    /** A copy of everything another server holds. */
    load({ contents, replId, offset }) {
        this.contents = contents;
        this.replId = replId;
        this.replId2 = "-";
        this.secondOffset = -1;
        this.#beginLogAt(offset);
        this.#keep();
    }
    /** REPLICAOF NO ONE: a new stream, which is the old one up to here. */
    beginStream() {
        this.replId2 = this.replId;
        this.secondOffset = this.offset + 1;
        this.replId = this.newId();
    }
    /** A partial resynchronisation was accepted: its stream goes on under another name. */
    adoptStream(replId) {
        if (this.replId === replId)
            return false;
        this.replId2 = this.replId;
        this.secondOffset = this.offset + 1;
        this.replId = replId;
        return true;
    }
    /** The process starts from a disk. `remembersStream`: an RDB tells where in which stream it stands, an AOF does not. */
    start(saved, role, remembersStream) {
        this.runId = this.newId();
        this.syncFull = 0;
        this.syncPartial = 0;
        this.role = role;
        this.contents = saved.contents;
        this.replId2 = "-";
        this.secondOffset = -1;
        this.replId = this.newId();
        if (remembersStream && role === "slave")
            this.replId = saved.replId;
        if (remembersStream && role === "master") {
            this.replId2 = saved.replId;
            this.secondOffset = saved.offset + 1;
        }
        this.#beginLogAt(remembersStream ? saved.offset : 0);
        this.isUp = true;
    }
    /** Whether Redis would go on from a replica's position instead of copying everything. */
    continuesFor(replica) {
        const isSameStream = replica.replId === this.replId || (replica.replId === this.replId2 && replica.offset < this.secondOffset);
        return isSameStream && replica.offset >= this.logStart && replica.offset <= this.offset;
    }
    get generation() {
        return Number(this.contents.record?.["g"] ?? 0);
    }
    saved() {
        const { contents, replId, offset, follows } = this;
        return { contents, replId, offset, follows };
    }
    #keep() {
        this.past.push(this.saved());
        this.generationHeard = Math.max(this.generationHeard, this.generation);
    }
    #beginLogAt(offset) {
        this.offset = offset;
        this.log = [this.contents];
        this.logStart = offset;
    }
}
//# sourceMappingURL=server.js.map