import { describe, it } from "vitest";
import { ownServerUnavailable, startRedisServer } from "../../../test/redis/test-redis.js";
import { importOn } from "./import-on.js";
import { skipWithoutSharedMail } from "./shared-mail.js";

describe("an import by four processes", () => {
  it("gives every message of all archives a number of its own, and none twice, on Redis", async (ctx) => {
    skipWithoutSharedMail(ctx);
    const reason = ownServerUnavailable();
    if (reason !== undefined) ctx.skip(reason);
    const { storeUrl: url } = await startRedisServer();
    await importOn(url);
  });
});
