import { describeStoreContract } from "./store-contract.js";
import { openMemory, openRedis, openSqlite } from "./stores-for-test.js";

describeStoreContract("memory", openMemory, { remembers: false });
describeStoreContract("embedded", openSqlite, { remembers: true });
describeStoreContract("Redis", openRedis, { remembers: true });
