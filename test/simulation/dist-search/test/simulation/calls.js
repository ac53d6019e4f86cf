import { decide, isRefusal, markIdOf, quorumOf, recordAfter } from "./product.js";
/** How long WAIT blocks, as in the product. */
export const QUORUM_TIMEOUT_MS = 1_000;
export class Calls {
    #options;
    #waiting = [];
    constructor(options) {
        this.#options = options;
    }
    /** A call has reached a server. */
    receive(server, call) {
        const { time, limits, variant, namespace, bounds, group } = this.#options;
        const { command, stampMs } = call;
        if (!server.isUp || !limits.mayMeet(server, command, call.clockAheadMs))
            return call.reply({ isLost: true });
        const situation = {
            namespace,
            keys: server.keys(),
            server: server.found(time.nowMs),
            nowMs: stampMs,
            bounds,
        };
        const decision = (variant.decide ?? decide)(situation, command);
        const counter = this.#count(server, command);
        if (isRefusal(decision)) {
            group.spread(server);
            return call.reply({ refusal: decision, counter });
        }
        const { record, runCount } = decision;
        server.execute(decision, command.step === "lease", markIdOf(record));
        group.spread(server);
        const after = recordAfter(record, command.nonce);
        const { offset } = server;
        const finish = (acknowledgedCount) => {
            const check = {
                nonce: command.nonce,
                role: server.role,
                epoch: server.epoch,
                generation: Number(server.contents.record?.["g"] ?? "-"),
            };
            call.reply({ outcome: { after, runCount, acknowledgedCount, check }, counter });
        };
        const quorum = quorumOf(record.nodeCount);
        if (variant.pretendsQuorum)
            return finish(quorum);
        if (server.acknowledgedCount(offset) >= quorum)
            return finish(server.acknowledgedCount(offset));
        this.#wait({ call, server, offset, quorum, finish });
    }
    /** A replica has acknowledged more. */
    acknowledged(server) {
        for (const waiting of this.#take((one) => one.server === server && server.acknowledgedCount(one.offset) >= one.quorum)) {
            waiting.finish(server.acknowledgedCount(waiting.offset));
        }
    }
    /** The server ends, or hangs up on all who wait because it becomes a replica. */
    hangUp(server) {
        for (const { call } of this.#take((one) => one.server === server))
            call.reply({ isLost: true });
    }
    /** The control asks beside every lease: INCR, in the same server at the same moment, with nothing that guards it. */
    #count(server, { step }) {
        if (step !== "lease" || server.role !== "master")
            return undefined;
        const counter = server.contents.counter + 1;
        server.write({ ...server.contents, counter });
        return counter;
    }
    #wait(waiting) {
        this.#waiting.push(waiting);
        this.#options.time.after(QUORUM_TIMEOUT_MS, () => {
            for (const { server, offset, finish } of this.#take((one) => one === waiting)) {
                finish(server.acknowledgedCount(offset));
            }
        });
    }
    #take(isMeant) {
        const taken = this.#waiting.filter(isMeant);
        if (taken.length > 0)
            this.#waiting = this.#waiting.filter((one) => !taken.includes(one));
        return taken;
    }
}
//# sourceMappingURL=calls.js.map