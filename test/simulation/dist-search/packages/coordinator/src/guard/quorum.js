/** How many nodes must have a step before it counts. */
/**
 * Acknowledgements to wait for, besides the master's own, with so many data nodes: then every majority that could promote a
 * node holds one that has the step. A single node has nobody to ask.
 */
export function quorumOf(nodeCount) {
    return Math.floor(nodeCount / 2);
}
//# sourceMappingURL=quorum.js.map