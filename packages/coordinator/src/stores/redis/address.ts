/** Where a Redis store is, and how the coordinator logs in there: one server, a Sentinel group, or a Cluster. */
import type { Endpoint, TlsFiles } from "../endpoint.js";

/** The login: the same at every server that keeps data. */
export interface RedisLogin {
  readonly tls: boolean;
  /** Only with `tls`. */
  readonly tlsFiles?: TlsFiles | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database: number;
}

export type RedisAddress = Endpoint & RedisLogin;

export interface SentinelPlace {
  readonly kind: "redis-sentinel";
  /** All of them: other sentinels are not queried. */
  readonly sentinels: readonly Endpoint[];
  /** The sentinels' name of the group. */
  readonly masterName: string;
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
}

export interface ClusterPlace {
  readonly kind: "redis-cluster";
  /** Some of its nodes: they name the others. */
  readonly nodes: readonly Endpoint[];
}

export type RedisPlace = ({ readonly kind: "redis" } & Endpoint) | SentinelPlace | ClusterPlace;
