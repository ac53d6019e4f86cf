/** What comes to a port where TLS is spoken, and is no TLS, or none that is good enough. For a coordinator that speaks HTTPS. */
import { type ConnectionOptions, connect } from "node:tls";
import type { Received } from "./raw-client.js";
import { leaseBody, type Row, request, rowOf, type Target } from "./row.js";

/** A record of a handshake that goes on, and does not. */
const HALF_A_HELLO = Buffer.from("16030100c8010000c40303", "hex");
/** So long nothing is answered, and then the connection is ended; sent alone it would be waited for. */
const thenEnd = { send: { thenEnd: true } } as const;

export const TLS_ROWS: readonly Row[] = [
  rowOf("tls", "a lease in plain HTTP", [], (target) => request(target, { body: leaseBody() })),
  rowOf("tls", "a look in plain HTTP", [], (target) => request(target, { path: "/healthz" })),
  rowOf("tls", "the preface of HTTP/2", [], () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  rowOf("tls", "a handshake that is cut short", [], () => HALF_A_HELLO, thenEnd),
  rowOf("tls", "bytes of no protocol", [], () => Buffer.alloc(64, 0xff)),
  rowOf("tls", "an alert in place of a handshake", [], () => Buffer.from("15030100020228", "hex"), thenEnd),
  rowOf("tls", "nothing, and an end", [], () => "", thenEnd),
  handshakeRow("a handshake of TLS 1.1", { minVersion: "TLSv1.1", maxVersion: "TLSv1.1" }),
  handshakeRow("a handshake with ciphers that nobody uses any more", {
    maxVersion: "TLSv1.2",
    ciphers: "NULL:@SECLEVEL=0",
  }),
];

/** A request behind a handshake that must not come about. */
function handshakeRow(input: string, options: ConnectionOptions): Row {
  const act = (target: Target) =>
    new Promise<Received>((resolve) => {
      let text = "";
      const { host, port } = target;
      const socket = connect({ host, port, rejectUnauthorized: false, ...options });
      socket.once("secureConnect", () => socket.write(request(target, { body: leaseBody() })));
      socket.setEncoding("latin1").on("data", (chunk: string) => {
        text += chunk;
      });
      socket.on("error", () => {});
      socket.once("close", () => {
        const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
        resolve({ text, statuses, isClosed: true });
      });
    });
  return { family: "tls", input, statuses: [], act };
}
