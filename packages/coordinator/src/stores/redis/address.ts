/** Where a Redis store is, and how the coordinator logs in there: one server, a Sentinel group, or a Cluster. */

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Files of TLS, in PEM; read when a connection is opened. */
export interface RedisTlsFiles {
  /** The authority that signs the servers' certificates. Default: the authorities that Node knows. */
  readonly ca?: string | undefined;
  /** The client certificate, for a server that requires one; with its key, or neither. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

/** The login: the same at every server that keeps data. */
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

/** As in a URL and in messages. */
export function endpointText({ host, port }: Endpoint): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
