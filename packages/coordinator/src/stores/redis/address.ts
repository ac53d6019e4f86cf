/** Where a Redis store is and how one logs in there: one server, a Sentinel group, or a Cluster. */

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Files of TLS, in PEM; read when a connection is opened. */
export interface RedisTlsFiles {
  /** Who signs the servers' certificates. Default: the authorities that Node knows. */
  readonly ca?: string | undefined;
  /** What the coordinator shows when the server asks for one; both, or none. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

/** How to log in: the same at every server that keeps data. */
export interface RedisLogin {
  readonly tls: boolean;
  /** Only with `tls`. */
  readonly tlsFiles?: RedisTlsFiles | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database: number;
}

export type RedisAddress = Endpoint & RedisLogin;

export interface SentinelPlace {
  readonly kind: "redis-sentinel";
  /** All of them: those that are not named here are not asked. */
  readonly sentinels: readonly Endpoint[];
  /** What the sentinels call the group. */
  readonly masterName: string;
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
}

export interface ClusterPlace {
  readonly kind: "redis-cluster";
  /** Some of its nodes, to begin with: the others are learnt from them. */
  readonly nodes: readonly Endpoint[];
}

interface ServerPlace extends Endpoint {
  readonly kind: "redis";
}

export type RedisPlace = ServerPlace | SentinelPlace | ClusterPlace;

/** As it is written in a URL and in messages. */
export function endpointText({ host, port }: Endpoint): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
