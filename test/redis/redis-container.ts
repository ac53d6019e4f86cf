/** The container of a Redis with the users that we ship, as `redis-server.ts` starts one. Loading testcontainers takes seconds. */
import { GenericContainer, getContainerRuntimeClient } from "testcontainers";
import { shippedUsers, testerUrlAt } from "./shipped-users.js";

const IMAGE = "redis:8-alpine";
const PORT = 6379;
const ACL_FILE = "/users.acl";

export interface ContainerRedis {
  /** For a user that may do everything. */
  readonly url: string;
  readonly image: string;
  remove(): Promise<void>;
}

/** Resolves when `isUp` does for its URL. @throws Error with the reason when it does not start; no container is left then. */
export async function startRedisContainer(isUp: (url: string) => Promise<unknown>): Promise<ContainerRedis> {
  const container = new RedisContainer(IMAGE)
    .withExposedPorts(PORT)
    .withCopyContentToContainer([{ content: shippedUsers(), target: ACL_FILE }])
    .withCommand(["redis-server", "--save", "", "--appendonly", "no", "--aclfile", ACL_FILE]);
  try {
    const started = await container.start();
    const url = testerUrlAt(started.getHost(), started.getMappedPort(PORT));
    await isUp(url);
    return { url, image: IMAGE, remove: () => container.remove() };
  } catch (error) {
    // testcontainers removes one that starts and never listens; the first error is the one to show.
    await container.remove().catch(() => {});
    throw error;
  }
}

class RedisContainer extends GenericContainer {
  #id: string | undefined;

  protected override async containerCreated(id: string): Promise<void> {
    this.#id = id;
  }

  /** However far it came: testcontainers leaves one that was created and did not start. */
  async remove(): Promise<void> {
    if (this.#id === undefined) return;
    const { container } = await getContainerRuntimeClient();
    await container.getById(this.#id).remove({ force: true, v: true });
  }
}
