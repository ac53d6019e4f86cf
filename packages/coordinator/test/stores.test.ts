import { describeStoreContract } from "./store-contract.js";
import { openMemory, openRedis, openSqlite } from "./stores-for-test.js";

describeStoreContract("memory", openMemory);
describeStoreContract("embedded", openSqlite);
describeStoreContract("Redis", openRedis);
