/** What a caller says first at a port where TLS is spoken, recorded once and said again: whoever repeats it computes nothing. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type ConnectionOptions, connect } from "node:tls";

const RECORD_HEAD_BYTES = 5;

/** One whole record, with keys that a server must reckon with. `options`: as of a caller that means it. */
export async function recordedHello(options: ConnectionOptions = {}): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const caller = connect({ ...options, host: "127.0.0.1", port, rejectUnauthorized: false }).on("error", () => {});
  const [socket] = (await once(server, "connection")) as [Socket];
  let bytes = Buffer.alloc(0);
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk as Buffer]);
    if (bytes.length > RECORD_HEAD_BYTES && bytes.length >= RECORD_HEAD_BYTES + bytes.readUInt16BE(3)) break;
  }
  caller.destroy();
  server.close();
  return bytes;
}
