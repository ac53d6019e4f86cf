export const SILENT_LOG = { debug() { }, info() { }, warn() { }, error() { } };
//# sourceMappingURL=log.js.map