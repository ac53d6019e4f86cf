/** Parses a store's URL for the adapters, and formats it without secrets. Opens nothing. */
import { isIPv6 } from "node:net";
import { resolve } from "node:path";
import { type Endpoint, endpointText, type TlsFiles } from "./endpoint.js";
import { type PostgresAddress, serverOf } from "./postgres/address.js";
import type { RedisLogin, RedisPlace } from "./redis/address.js";
import type { RedisGroupOptions, RedisStoreOptions } from "./redis/store.js";

/** In front of every key unless the URL has another one. */
const DEFAULT_KEY_PREFIX = "callnumber:";
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const POSTGRES_PORT = 5432;
const DEFAULT_SCHEMA = "callnumber";

/** Where a store is, as its URL names it. */
export type StoreAddress =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly path: string }
  | PostgresAddress
  | (RedisStoreOptions & { readonly kind: "redis" })
  | RedisGroupOptions;

const FORMS =
  "memory:, sqlite:PATH, postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?schema=SCHEMA&sslmode=verify-full], redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=PREFIX], " +
  "redis-sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…]/MASTERNAME[/DATABASE][?prefix=…&sentinelUsername=…&sentinelPassword=…], " +
  "redis-cluster://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][?prefix=…]; rediss… in place of redis… for TLS; with TLS &ca=FILE, &certificate=FILE&key=FILE";

/** The parts of a server's URL that are the same for every kind, not yet decoded. */
interface Parts {
  readonly userinfo: string;
  readonly hosts: readonly string[];
  /** The segments after the hosts. */
  readonly path: readonly string[];
  readonly settings: ReadonlyMap<string, string>;
}

/**
 * Parses a store's URL.
 * @throws TypeError that names the problem and the forms of a URL; it never repeats a password.
 */
export function parseStoreUrl(text: string): StoreAddress {
  if (text === "memory:") return { kind: "memory" };
  if (text.startsWith("sqlite:")) return { kind: "sqlite", path: sqlitePath(text.slice("sqlite:".length)) };
  const [, ofPostgres] = /^postgres(?:ql)?:\/\/(.*)$/s.exec(text) ?? [];
  if (ofPostgres !== undefined) return postgresAddressIn(partsOf(ofPostgres));
  const [, scheme = "", s = "", suffix = ""] = /^(redis(s?)(-sentinel|-cluster)?):\/\//.exec(text) ?? [];
  if (scheme === "") {
    const other = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text)?.[0];
    throw unusable(other === undefined ? "it has no kind in front" : `"${other}" is not a kind of store`);
  }
  const parts = partsOf(text.slice(`${scheme}://`.length));
  const tlsFiles = tlsFilesIn(parts, s === "" ? "rediss… in place of redis… begins" : undefined);
  const { place, database } = placeIn(`redis${suffix}` as RedisPlace["kind"], parts);
  const keyPrefix = keyPrefixIn(parts);
  return { ...place, ...loginIn(parts.userinfo), tls: s !== "", ...tlsFiles, database, keyPrefix };
}

/** The URL for messages and logs: without password, and the same in whatever order hosts are given. */
export function describeStore(address: StoreAddress): string {
  if (address.kind === "memory") return "memory: (forgets everything when it stops)";
  if (address.kind === "sqlite") return `sqlite:${address.path}`;
  const user = address.username ? `${encodeURIComponent(address.username)}@` : "";
  if (address.kind === "postgres") return describePostgres(address, user);
  const { kind, tls, database, keyPrefix } = address;
  const scheme = tls ? kind.replace("redis", "rediss") : kind;
  const hosts = endpointsOf(address).map(endpointText).sort().join(",");
  const master = kind === "redis-sentinel" ? `/${address.masterName}` : "";
  const path = kind === "redis-cluster" ? "" : `${master}/${database}`;
  const prefix = keyPrefix === DEFAULT_KEY_PREFIX ? "" : `?prefix=${keyPrefix}`;
  return `${scheme}://${user}${hosts}${path}${prefix}`;
}

function describePostgres(address: PostgresAddress, user: string): string {
  const { host, port, database, schema, tls } = address;
  const isSocket = host.startsWith("/");
  const settings = [
    ...(isSocket ? [`host=${encodeURIComponent(host).replaceAll("%2F", "/")}`] : []),
    ...(schema === DEFAULT_SCHEMA ? [] : [`schema=${schema}`]),
    ...(tls ? ["sslmode=verify-full"] : []),
  ].join("&");
  const place = isSocket ? `:${port}` : serverOf({ host, port });
  return `postgres://${user}${place}/${encodeURIComponent(database)}${settings && `?${settings}`}`;
}

/** The URL for a command that is printed to be run: without password, with the files of TLS. */
export function commandUrlOf(address: StoreAddress): string {
  if (address.kind === "memory") return "memory:";
  if (address.kind === "sqlite") return describeStore(address);
  const place = describeStore(address);
  const files = Object.entries(address.tlsFiles ?? {}).map(
    ([name, path]) => `${name}=${encodeURIComponent(path).replaceAll("%2F", "/")}`,
  );
  return files.length === 0 ? place : `${place}${place.includes("?") ? "&" : "?"}${files.join("&")}`;
}

/** Whether a URL without a password, as commands are printed, may stand for another one: for the same place, and no other user. */
export function standsFor(typed: StoreAddress, given: StoreAddress): boolean {
  if (!("username" in typed && "username" in given) || typed.password !== undefined) return false;
  const isHisOwn = typed.username === undefined || typed.username === given.username;
  return isHisOwn && describeStore(withoutLogin(typed)) === describeStore(withoutLogin(given));
}

/** Whether the store lies within the coordinator's process or machine: no server is asked, and the first start may make it. */
export function isEmbedded({ kind }: StoreAddress): boolean {
  return kind === "memory" || kind === "sqlite";
}

/** For what a coordinator prints: an operator's user is another one. */
export function withoutLogin(address: StoreAddress): StoreAddress {
  return "username" in address ? { ...address, username: undefined } : address;
}

/**
 * Where the store is, whatever the login: the hosts of a group apart from its name, because hosts come and go. `url` is the same text for the same
 * place, printable and without spaces. See StorePlace.
 */
export function placeOf(address: StoreAddress): {
  readonly group: string;
  readonly addresses: readonly string[];
  readonly url: string;
} {
  const url = describeStore(withoutLogin(address)).replace(/[^!-$&-~]/gu, encodeURIComponent);
  if (address.kind === "memory") return { group: "memory", addresses: [], url };
  if (address.kind === "sqlite") return { group: "sqlite", addresses: [address.path], url };
  if (address.kind === "postgres") {
    const { database, schema } = address;
    return { group: `postgres/${database}/${schema}`, addresses: [serverOf(address)], url };
  }
  const { kind, database, keyPrefix } = address;
  const name = kind === "redis-sentinel" ? address.masterName : "";
  const group = [kind, name, database, keyPrefix].join("/");
  return { group, addresses: endpointsOf(address).map(endpointText), url };
}

function endpointsOf(place: RedisPlace): readonly Endpoint[] {
  if (place.kind === "redis-sentinel") return place.sentinels;
  return place.kind === "redis-cluster" ? place.nodes : [place];
}

/** `PATH`, or `///PATH` as a URL writes it. Absolute: another working folder must not become another store. */
function sqlitePath(text: string): string {
  if (text === "") throw unusable("sqlite: needs the path of a file behind it");
  if (text.startsWith("~")) throw unusable(`the shell leaves "~" behind sqlite: as it is; write the path out`);
  if (!text.startsWith("//")) return resolve(text);
  if (!text.startsWith("///")) throw unusable("sqlite:// names a host; write sqlite:PATH, or three slashes");
  return resolve(text.slice(2));
}

/** The platform's URL class takes one host only. */
function partsOf(text: string): Parts {
  const [, authority = "", path = "", query = ""] = /^([^/?#]*)([^?#]*)(\?[^#]*)?$/.exec(text) ?? [];
  // A password that ends the hosts too early would be shown as path or setting: nothing of it is read.
  if (text.slice(authority.length).includes("@")) {
    throw unusable("an @ is after the hosts: write / ? # in user and password as %2F %3F %23");
  }
  if (text.includes("#")) throw unusable("it has a # (in user and password: %23)");
  const at = authority.lastIndexOf("@");
  return {
    userinfo: at < 0 ? "" : authority.slice(0, at),
    hosts: authority.slice(at + 1).split(","),
    path: path.replace(/\/$/, "").split("/").slice(1),
    // In a form a plus is a space; in a password it is a plus.
    settings: new Map(new URLSearchParams(query.replaceAll("+", "%2B"))),
  };
}

/** Names of the platform that every PostgreSQL takes without quotes, so that no message needs them. */
const SCHEMA_PATTERN = /^[a-z_][a-z0-9_]{0,62}$/;

function postgresAddressIn(parts: Parts): PostgresAddress {
  const { hosts, path, settings, userinfo } = parts;
  mustKnow(settings, ["schema", "sslmode", "host"]);
  const [host = "", ...otherHosts] = hosts;
  if (otherHosts.length > 0) throw unusable("postgres:// names one server, or a name that follows the primary");
  const [database = "", ...others] = path;
  if (database === "" || others.length > 0) throw unusable("behind the host stands the name of the database");
  const schema = settings.get("schema") ?? DEFAULT_SCHEMA;
  if (!SCHEMA_PATTERN.test(schema)) {
    throw unusable(`a schema has 1 to 63 characters a-z, 0-9, underscore, and begins with no digit, not "${schema}"`);
  }
  const mode = settings.get("sslmode") ?? "disable";
  if (mode !== "disable" && mode !== "verify-full") {
    throw unusable("sslmode is verify-full, or disable: the others do not verify which server answers");
  }
  const tls = mode === "verify-full";
  const tlsFiles = tlsFilesIn(parts, tls ? undefined : "sslmode=verify-full begins");
  const folder = settings.get("host");
  if (folder !== undefined && (!folder.startsWith("/") || tls)) {
    throw unusable("host= names the folder of a Unix socket, which has no TLS, as in ?host=/var/run/postgresql");
  }
  const { port, ...server } = endpointIn(folder === undefined ? host : `socket${host}`, POSTGRES_PORT);
  const place = { host: folder ?? server.host, port, database: decoded("database", database), schema };
  return { kind: "postgres", ...place, ...loginIn(userinfo), tls, ...tlsFiles };
}

function placeIn(
  kind: RedisPlace["kind"],
  { hosts, path, settings }: Parts,
): { readonly place: RedisPlace; readonly database: number } {
  const isSentinel = kind === "redis-sentinel";
  mustKnow(settings, isSentinel ? ["prefix", "sentinelUsername", "sentinelPassword"] : ["prefix"]);
  const endpoints = () => hosts.map((host) => endpointIn(host, isSentinel ? SENTINEL_PORT : REDIS_PORT));
  if (kind === "redis-cluster") {
    if (path.length > 1 || databaseIn(path[0]) !== 0) throw unusable("a Cluster has database 0 only");
    return { place: { kind, nodes: endpoints() }, database: 0 };
  }
  if (kind === "redis") {
    const [first, ...others] = endpoints();
    if (first === undefined || others.length > 0) {
      throw unusable("redis:// names one server; several are a redis-sentinel:// or a redis-cluster://");
    }
    if (path.length > 1) throw unusable("behind the host stands one number, the database");
    return { place: { kind, ...first }, database: databaseIn(path[0]) };
  }
  const [masterName = "", database, ...others] = path;
  if (!/^[A-Za-z0-9._-]+$/.test(masterName) || others.length > 0) {
    throw unusable("behind the sentinels stands the name of the master, as in /mymaster or /mymaster/0");
  }
  const sentinels = endpoints();
  const sentinelUsername = settings.get("sentinelUsername") || undefined;
  const sentinelPassword = settings.get("sentinelPassword") || undefined;
  if (sentinelUsername !== undefined && sentinelPassword === undefined) {
    throw unusable("sentinelUsername needs a sentinelPassword");
  }
  return { place: { kind, sentinels, masterName, sentinelUsername, sentinelPassword }, database: databaseIn(database) };
}

function endpointIn(text: string, defaultPort: number): Endpoint {
  const [, bracketed, name, digits] = /^(?:\[([0-9a-fA-F:.%]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? name;
  const port = Number(digits ?? defaultPort);
  // Not repeated: it may be a piece of a password.
  const isNoAddress = bracketed !== undefined && !isIPv6(bracketed);
  if (host === undefined || isNoAddress || port < 1 || port > 65_535) {
    throw unusable(
      text === ""
        ? "it names no host"
        : "a host or its port can't be read (/ ? # @ in a password are written as %2F %3F %23 %40)",
    );
  }
  return { host, port };
}

function databaseIn(text = "0"): number {
  // Not repeated: it may be a piece of a password.
  if (!/^\d{1,4}$/.test(text)) throw unusable("the database must be a number");
  return Number(text);
}

function keyPrefixIn({ settings }: Parts): string {
  const keyPrefix = settings.get("prefix") ?? DEFAULT_KEY_PREFIX;
  if (!/^[A-Za-z0-9:._-]{1,64}$/.test(keyPrefix)) {
    throw unusable(`a prefix has 1 to 64 characters A-Z, a-z, 0-9, colon, dot, dash, underscore, not "${keyPrefix}"`);
  }
  return keyPrefix;
}

const TLS_SETTINGS = ["ca", "certificate", "key"] as const;

/**
 * Nothing at all without one of them. Paths become absolute: another working folder must not be other files. `whyNone`: what would begin TLS, where
 * the URL has none.
 */
function tlsFilesIn({ settings }: Parts, whyNone: string | undefined): Pick<RedisLogin, "tlsFiles"> {
  const given = TLS_SETTINGS.filter((name) => settings.has(name));
  if (given.length === 0) return {};
  if (whyNone !== undefined) throw unusable(`${given.join(", ")} are for TLS, which ${whyNone}`);
  const empty = given.find((name) => settings.get(name) === "");
  if (empty !== undefined) throw unusable(`${empty} needs the path of a file`);
  if (settings.has("certificate") !== settings.has("key")) throw unusable("certificate and key need each other");
  const files = given.map((name) => [name, resolve(settings.get(name) as string)]);
  return { tlsFiles: Object.fromEntries(files) as TlsFiles };
}

function mustKnow(settings: ReadonlyMap<string, string>, own: readonly string[]): void {
  const known = [...own, ...TLS_SETTINGS];
  const unknown = [...settings.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  // It may be the end of a password.
  const isSecret = settings.has("sentinelPassword") && unknown !== "sentinelPassword";
  const quoted = isSecret ? "like one of these (an & in a password is written as %26)" : `"${unknown}"`;
  throw unusable(`it knows no setting ${quoted}; only ${known.join(", ")}`);
}

function loginIn(userinfo: string): Pick<RedisLogin, "username" | "password"> {
  const colon = userinfo.indexOf(":");
  const [user, password] = colon < 0 ? [userinfo, ""] : [userinfo.slice(0, colon), userinfo.slice(colon + 1)];
  return { username: decoded("user", user) || undefined, password: decoded("password", password) || undefined };
}

function decoded(name: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unusable(`its ${name} holds a % that begins no escape; write % as %25`);
  }
}

function unusable(reason: string): TypeError {
  return new TypeError(`the store's URL can't be used: ${reason}. Forms: ${FORMS}`);
}
