/** Whether a container engine is there to be asked. testcontainers finds out too, but loading it takes seconds. */
import { request } from "node:http";

const DEFAULT_SOCKET = "/var/run/docker.sock";
const ENGINE_ANSWER_TIMEOUT_MS = 2_000;

/** Where the engine is: `dockerHost` is what DOCKER_HOST says. */
export function engineAddress(dockerHost: string | undefined): string {
  return dockerHost || `unix://${DEFAULT_SOCKET}`;
}

/** Why no engine answers at the address, or undefined when one does. */
export async function whyEngineIsSilent(address: string): Promise<string | undefined> {
  const { protocol, hostname, port, pathname } = new URL(address);
  if (protocol !== "unix:" && protocol !== "tcp:") return `${protocol} addresses are not asked`;
  const target = protocol === "unix:" ? { socketPath: pathname } : { host: hostname, port };
  return await new Promise((resolve) => {
    const ping = request({ ...target, path: "/_ping", timeout: ENGINE_ANSWER_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? undefined : `it answers ${response.statusCode}`);
    });
    ping.on("timeout", () => ping.destroy(new Error(`no answer within ${ENGINE_ANSWER_TIMEOUT_MS} ms`)));
    ping.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    ping.end();
  });
}
