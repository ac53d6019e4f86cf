export type { ClientErrorCode, Holder, Lease } from "@callnumber/protocol/api";
export type { CallNumber } from "@callnumber/protocol/codec";
export { TAKE_COUNT_MAX } from "./call-arguments.js";
export { Client, createClient } from "./client.js";
export { ClientError } from "./client-error.js";
export { type Fetch, type HttpSourceOptions, httpSource } from "./http-source.js";
export type { CallOptions, LeaseSource } from "./lease-source.js";
export type { ClientHooks, ClientOptions } from "./options.js";
