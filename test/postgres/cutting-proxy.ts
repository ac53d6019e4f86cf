/** A TCP proxy that cuts all its connections after so many bytes of one direction. Knows nothing of what they mean. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type Direction = "to_server" | "to_client";

export interface CuttingProxy {
  readonly port: number;
  /** Of what comes next in this direction only so many bytes pass; then every connection is cut, and all is as before. Resolves at the cut. */
  cutAfter(direction: Direction, byteCount: number): Promise<void>;
  /** How many bytes have passed since the start. */
  readonly passed: Readonly<Record<Direction, number>>;
  close(): Promise<void>;
}

export async function startCuttingProxy(target: {
  readonly host: string;
  readonly port: number;
}): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const passed = { to_server: 0, to_client: 0 };
  let order: { readonly direction: Direction; left: number; readonly cut: () => void } | undefined;
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const passOn = (direction: Direction, to: Socket) => (chunk: Buffer) => {
    if (order?.direction !== direction || chunk.length < order.left) {
      if (order?.direction === direction) order.left -= chunk.length;
      passed[direction] += chunk.length;
      to.write(chunk);
      return;
    }
    const { left, cut } = order;
    order = undefined;
    passed[direction] += left;
    // Not before the last piece has gone out.
    to.write(chunk.subarray(0, left), () => {
      cutAll();
      cut();
    });
  };
  const server = createServer((client) => {
    const upstream = connect(target.port, target.host);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on("data", passOn("to_server", upstream));
    upstream.on("data", passOn("to_client", client));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    cutAfter: (direction, byteCount) =>
      new Promise((resolve) => {
        order = { direction, left: byteCount, cut: resolve };
      }),
    passed,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      cutAll();
      await closed;
    },
  };
}
