/** The guard as it is. */
export const THE_GUARD = { name: "none", fault: "nothing: the guard as it is" };
//# sourceMappingURL=variant.js.map