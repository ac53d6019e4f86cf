/** Paths, private files and addresses of this machine. An entry of its own, because it loads nothing but the platform. */
export { isLoopback } from "./platform/loopback.js";
export { faultOfMode, readPrivateFile } from "./platform/private-file.js";
export { LinkLeadsNowhere, realPathOf } from "./platform/real-path.js";
