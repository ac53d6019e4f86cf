/** `WAIT` is not judged: a master alone on its side of a cut goes on leasing. */
export const NO_QUORUM = {
    name: "no-quorum",
    fault: "nobody waits for the other nodes, or looks how many have it",
    pretendsQuorum: true,
};
//# sourceMappingURL=no-quorum.js.map