/** Where a store in PostgreSQL is, and how the coordinator logs in there. */
import { type Endpoint, endpointText, type TlsFiles } from "../endpoint.js";

/** A schema in a database. A host that begins with a slash is the folder of the server's Unix socket. */
export interface PostgresAddress extends Endpoint {
  readonly kind: "postgres";
  readonly tls: boolean;
  /** Only with `tls`. */
  readonly tlsFiles?: TlsFiles | undefined;
  readonly username?: string | undefined;
  /** Default: that of the user's password file, `~/.pgpass`. */
  readonly password?: string | undefined;
  readonly database: string;
  readonly schema: string;
}

/** For messages. */
export function serverOf({ host, port }: Endpoint): string {
  return host.startsWith("/") ? `${host}:${port}` : endpointText({ host, port });
}
