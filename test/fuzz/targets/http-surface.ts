/** The HTTP surface where nobody is asked for a token: valid requests made wrong, as bytes on real sockets. */
import { connect } from "node:net";
import { startFuzzedServer } from "../fuzzed-server.js";
import { requestBatch } from "../http-requests.js";
import type { FuzzTarget } from "../target.js";

export const httpSurface: FuzzTarget = {
  name: "http-surface",
  shortCount: 10,
  async start() {
    const server = await startFuzzedServer({
      namespaces: ["main"],
      server: {},
      connectTo: (port) => connect({ port, host: "127.0.0.1", noDelay: true }),
    });
    return {
      input: (draw) => requestBatch(draw),
      check: async (input) => void (await server.check(input)),
      stop: server.stop,
    };
  },
};
