/**
 * A group with Sentinels whose servers have the users that we ship and no other way in: they follow, are watched, change sides and come back,
 * and a coordinator goes on leasing, all of them with the rights of make-acl.sh alone.
 */
import { beforeEach, expect, test } from "vitest";
import { expectNoRunTwice, RATE, startCrowd } from "../../packages/coordinator/test/leasing-crowd.js";
import { redisCoordinatorAt } from "../../packages/coordinator/test/redis-coordinator.js";
import { command, info, until } from "../redis/redis-command.js";
import { startSentinelRedis } from "../redis/sentinel-redis.js";
import { sentinelStoreUrlAt } from "../redis/shipped-users.js";
import { ownServerUnavailable } from "../redis/test-redis.js";

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

test("a fail-over and the return of the old master need no right that the shipped users do not have", async () => {
  const group = await startSentinelRedis();
  for (const node of group.nodes) {
    await expect(command({ url: `redis://${node.host}:${node.port}` }, "PING")).rejects.toThrow(/NOAUTH/);
  }
  const { coordinator } = await redisCoordinatorAt(sentinelStoreUrlAt(group.sentinelHosts, group.masterName));
  await coordinator.initNamespace("main", { nodeCount: 3, rate: RATE });
  const crowd = startCrowd([coordinator], ["main"]);
  await crowd.untilLeased();
  const former = group.master;
  await former.kill("SIGKILL");
  await group.waitForMaster(former);
  await crowd.untilLeased();
  await former.start();
  await until(
    "the old master follows, and is linked",
    () => info(former),
    ({ role, master_link_status }) => role === "slave" && master_link_status === "up",
  );
  await crowd.untilLeased();
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
  for (const node of group.nodes) expect(await command(node, "ACL", "LOG")).toEqual([]);
});
