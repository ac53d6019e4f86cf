import { describeStoreContract } from "./store-contract.js";
import { openMemory, openRedis, openSqlite } from "./stores-for-test.js";

describeStoreContract("memory", openMemory, { remembers: false, sharesClock: true });
describeStoreContract("embedded", openSqlite, { remembers: true, sharesClock: true });
describeStoreContract("Redis", openRedis, { remembers: true, sharesClock: false });
