/** Paths, private files and addresses of this machine. An entry of its own, because it loads nothing but the platform. */
export { isLoopback } from "./loopback.js";
export { faultOfMode, readPrivateFile } from "./private-file.js";
export { LinkLeadsNowhere, realPathOf } from "./real-path.js";
