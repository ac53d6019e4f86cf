/**
 * Errors of a connection to Redis that come after its first one. The Redis client (ioredis 6.0.0) hears one of each connection; a second, as
 * a broken TLS handshake can bring, would be nobody's and end the process. The first one has said all: the connection is given up.
 */
import { createRequire } from "node:module";
import type { Socket } from "node:net";

const CONNECTORS = ["StandaloneConnector.js", "SentinelConnector/index.js"];

interface Connector {
  connect(...given: unknown[]): Promise<Socket>;
}

let isDone = false;

/** Once for the process: the client gives no way to it for one connection. */
export function bearLateErrors(): void {
  if (isDone) return;
  isDone = true;
  for (const name of CONNECTORS) {
    const { default: connector } = createRequire(import.meta.url)(`ioredis/built/connectors/${name}`) as {
      readonly default: { readonly prototype: Connector };
    };
    const { connect } = connector.prototype;
    connector.prototype.connect = async function bearing(this: Connector, ...given) {
      const socket = await connect.apply(this, given);
      return socket.on("error", () => {});
    };
  }
}
