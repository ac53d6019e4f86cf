/** From a store's URL to what the adapter needs, and to a text without secrets for people. Opens nothing. */
import { resolve } from "node:path";
import type { RedisStoreOptions } from "./redis-store.js";

/** In front of every key unless the URL says otherwise. */
const DEFAULT_KEY_PREFIX = "callnumber:";

export type StoreAddress =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly path: string }
  | ({ readonly kind: "redis" } & RedisStoreOptions);

const FORMS = "memory:, sqlite:PATH, redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=PREFIX], rediss://… (TLS)";

/**
 * Takes a store's URL apart.
 * @throws TypeError that says what is wrong and which forms there are; it never repeats a password.
 */
export function parseStoreUrl(text: string): StoreAddress {
  if (text === "memory:") return { kind: "memory" };
  if (text.startsWith("sqlite:")) {
    const path = text.slice("sqlite:".length);
    return { kind: "sqlite", path: sqlitePath(path) };
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "redis:" || url?.protocol === "rediss:") return redisAddress(url);
  throw unusable(url ? `"${url.protocol}" is no kind of store` : "it has no kind in front");
}

/** The URL for messages and logs: without password. */
export function describeStore(address: StoreAddress): string {
  if (address.kind === "memory") return "memory: (forgets everything when it stops)";
  if (address.kind === "sqlite") return `sqlite:${address.path}`;
  const { tls, username, host, port, database, keyPrefix } = address;
  const user = username ? `${username}@` : "";
  const prefix = keyPrefix === DEFAULT_KEY_PREFIX ? "" : `?prefix=${keyPrefix}`;
  return `${tls ? "rediss" : "redis"}://${user}${host}:${port}/${database}${prefix}`;
}

/** `PATH`, or `///PATH` as a URL writes it. Absolute: another working folder must not become another store. */
function sqlitePath(text: string): string {
  if (text === "") throw unusable("sqlite: needs the path of a file behind it");
  if (text.startsWith("~")) throw unusable(`the shell leaves "~" behind sqlite: as it is; write the path out`);
  if (!text.startsWith("//")) return resolve(text);
  if (!text.startsWith("///")) throw unusable("sqlite:// names a host; write sqlite:PATH, or three slashes");
  return text.slice(2);
}

function redisAddress(url: URL): StoreAddress {
  const database = /^\/?(\d{1,4})?$/.exec(url.pathname);
  if (database === null) throw unusable(`the database must be a number, not "${url.pathname.slice(1)}"`);
  for (const name of url.searchParams.keys()) {
    if (name !== "prefix") throw unusable(`it knows no setting "${name}"; only prefix`);
  }
  const keyPrefix = url.searchParams.get("prefix") ?? DEFAULT_KEY_PREFIX;
  if (!/^[A-Za-z0-9:._-]{1,64}$/.test(keyPrefix)) {
    throw unusable(`a prefix has 1 to 64 characters A-Z, a-z, 0-9, colon, dot, dash, underscore, not "${keyPrefix}"`);
  }
  if (url.hostname === "") throw unusable("it names no host");
  return {
    kind: "redis",
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? 6379 : Number(url.port),
    tls: url.protocol === "rediss:",
    username: decoded("user", url.username) || undefined,
    password: decoded("password", url.password) || undefined,
    database: Number(database[1] ?? 0),
    keyPrefix,
  };
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
