/**
 * Where requests come from: so that they are not taken for one stranger's flood, whose connections are not read for a while. All addresses of
 * 127.0.0.0/8 are this machine's on Linux; elsewhere there is one.
 */
const COUNT = 250;

export function callerAddresses(): () => string {
  let asked = 0;
  return () => (process.platform === "linux" ? `127.0.1.${1 + (asked++ % COUNT)}` : "127.0.0.1");
}
