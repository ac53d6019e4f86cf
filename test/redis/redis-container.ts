/**
 * A Redis in a container, for machines with a container engine.
 * The engine is asked first and testcontainers loaded after: loading it takes seconds, and most machines need it not.
 */
import type { StartedTestContainer } from "testcontainers";
import { engineAddress, whyEngineIsSilent } from "../processes/container-engine.js";

const IMAGE = "redis:8-alpine";
const REDIS_PORT = 6379;

export interface RedisContainer {
  url: string;
  image: string;
  stop(): Promise<void>;
}

/** A started container, or why there is none. */
export async function startRedisContainer(dockerHost: string | undefined): Promise<RedisContainer | string> {
  const address = engineAddress(dockerHost);
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
