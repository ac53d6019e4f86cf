/** Gives pnpm the peers of the workspace's root as what they are: its development dependencies (ADR 0005). */
const ROOT = "callnumber-workspace";

module.exports = {
  hooks: {
    readPackage({ peerDependencies, ...manifest }) {
      return manifest.name === ROOT
        ? { ...manifest, devDependencies: peerDependencies }
        : { peerDependencies, ...manifest };
    },
  },
};
