/**
 * A Redis in a container, for machines with a container engine.
 * The engine is asked first and testcontainers loaded after: loading it takes seconds, and most machines need it not.
 */
import { request } from "node:http";
import type { StartedTestContainer } from "testcontainers";

const IMAGE = "redis:8-alpine";
const REDIS_PORT = 6379;
const DEFAULT_SOCKET = "/var/run/docker.sock";
const ENGINE_ANSWER_TIMEOUT_MS = 2_000;

export interface RedisContainer {
  url: string;
  image: string;
  stop(): Promise<void>;
}

/** A started container, or why there is none. */
export async function startRedisContainer(dockerHost: string | undefined): Promise<RedisContainer | string> {
  const address = dockerHost || `unix://${DEFAULT_SOCKET}`;
  const silence = await whyEngineIsSilent(address);
  if (silence !== undefined) return `no container engine at ${address}: ${silence}`;
  try {
    const { GenericContainer } = await import("testcontainers");
    const container: StartedTestContainer = await new GenericContainer(IMAGE).withExposedPorts(REDIS_PORT).start();
    return {
      url: `redis://${container.getHost()}:${container.getMappedPort(REDIS_PORT)}`,
      image: IMAGE,
      stop: async () => void (await container.stop()),
    };
  } catch (error) {
    return `the container engine at ${address} could not start ${IMAGE}: ${(error as Error).message}`;
  }
}

async function whyEngineIsSilent(address: string): Promise<string | undefined> {
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
