import { describeStoreContract } from "./store-contract.js";
import { HAS_REDIS, openMemory, openRedis, openSqlite } from "./stores-for-test.js";

describeStoreContract("memory", openMemory, { remembers: false, sharesClock: true });
describeStoreContract("embedded", openSqlite, { remembers: true, sharesClock: true });
if (HAS_REDIS) describeStoreContract("Redis", openRedis, { remembers: true, sharesClock: false });
