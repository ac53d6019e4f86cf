import { Server } from "./server.js";
export class Group {
    servers;
    #options;
    constructor(options) {
        let ids = 0;
        const newId = () => `id${++ids}`;
        this.servers = Array.from({ length: options.serverCount }, (_, index) => new Server(index, newId, options.toldEpoch));
        this.#options = options;
    }
    at(index) {
        return this.servers[index % this.servers.length];
    }
    get masters() {
        return this.servers.filter(({ isUp, role }) => isUp && role === "master");
    }
    /** A master or replica has new writes: its replicas are told. */
    spread(server) {
        for (const replica of this.#followersOf(server))
            this.#replicate(server, replica);
    }
    /** REPLICAOF NO ONE. Its old master lives on and is told nothing. */
    promote(server) {
        this.#breakLink(server, "none");
        server.role = "master";
        server.follows = undefined;
        server.beginStream();
        this.#kickFollowers(server);
    }
    /** REPLICAOF another one: no master any more from this moment, whether the link comes to stand or not. */
    follow(server, master) {
        this.#breakLink(server, "asking");
        server.role = "slave";
        server.follows = master.index;
        this.#ask(server);
    }
    /** The link of a replica breaks and comes again. */
    interrupt(replica) {
        if (replica.follows === undefined || replica.link !== "up")
            return false;
        this.#breakLink(replica, "asking");
        this.#ask(replica);
        return true;
    }
    /** The process ends: nothing is attached to it any more, and it to nothing. */
    end(server) {
        server.isUp = false;
        this.#breakLink(server, "none");
        server.acknowledged.length = 0;
        for (const follower of this.#followersOf(server))
            this.#breakLink(follower, "asking");
    }
    /** After `start`: looks for its master, and is found by its replicas. */
    rejoin(server, master) {
        server.follows = master?.index;
        if (master !== undefined) {
            server.link = "asking";
            this.#ask(server);
        }
        for (const follower of this.#followersOf(server))
            this.#ask(follower);
    }
    #followersOf(server) {
        return this.servers.filter(({ follows, isUp }) => isUp && follows === server.index);
    }
    #breakLink(replica, link) {
        if (replica.follows !== undefined)
            this.at(replica.follows).acknowledged[replica.index] = undefined;
        replica.linkLife++;
        replica.link = link;
        replica.isReplicating = false;
    }
    /** A stream that changes its name, or its past, is asked for anew by all who follow it. */
    #kickFollowers(server) {
        for (const follower of this.#followersOf(server)) {
            this.#breakLink(follower, "asking");
            this.#ask(follower);
        }
    }
    /** PSYNC. */
    #ask(replica) {
        const life = ++replica.linkLife;
        const master = this.at(replica.follows);
        this.#options.network.carry(replica.index, master.index, "psync", () => {
            if (replica.linkLife !== life || !master.isUp || !this.#options.mayFollow(replica, master))
                return;
            // A replica without its own master gives nothing on; it is asked again when it has one.
            if (master.role === "slave" && master.link !== "up")
                return;
            if (master.continuesFor(replica))
                this.#continue(master, replica, life);
            else
                this.#copy(master, replica, life);
        });
    }
    #continue(master, replica, life) {
        const { replId } = master;
        master.syncPartial++;
        master.acknowledged[replica.index] = -1;
        replica.link = "loading";
        this.#options.network.carry(master.index, replica.index, "continue", () => {
            if (replica.linkLife !== life)
                return;
            replica.link = "up";
            if (replica.adoptStream(replId))
                this.#kickFollowers(replica);
            else
                this.#askedBefore(replica);
            this.#acknowledge(master, replica, life);
            this.#replicate(master, replica);
        });
    }
    #copy(master, replica, life) {
        master.syncFull++;
        const saved = master.saved();
        master.acknowledged[replica.index] = -1;
        replica.link = "loading";
        this.#options.network.carry(master.index, replica.index, "copy", () => {
            if (replica.linkLife !== life)
                return;
            replica.load(saved);
            replica.link = "up";
            this.#kickFollowers(replica);
            this.#acknowledge(master, replica, life);
            this.#replicate(master, replica);
        });
    }
    #askedBefore(server) {
        for (const follower of this.#followersOf(server))
            if (follower.link === "asking")
                this.#ask(follower);
    }
    #replicate(master, replica) {
        if (replica.link !== "up" || replica.isReplicating || replica.offset === master.offset)
            return;
        replica.isReplicating = true;
        const life = replica.linkLife;
        this.#options.network.carry(master.index, replica.index, "replicate", () => {
            if (replica.linkLife !== life)
                return;
            replica.isReplicating = false;
            for (const contents of master.log.slice(replica.offset + 1 - master.logStart))
                replica.write(contents);
            this.#acknowledge(master, replica, life);
            this.spread(replica);
        });
    }
    #acknowledge(master, replica, life) {
        const { offset } = replica;
        this.#options.network.carry(replica.index, master.index, "acknowledge", () => {
            const before = master.acknowledged[replica.index];
            if (replica.linkLife !== life || before === undefined || before >= offset)
                return;
            master.acknowledged[replica.index] = offset;
            this.#options.acknowledged(master);
        });
    }
}
//# sourceMappingURL=replication.js.map