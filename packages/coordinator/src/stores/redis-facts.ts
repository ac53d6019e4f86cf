/** What is known of a Redis server: its own words, and what it is to us. */
import { escapeAndShorten } from "../text.js";

/** What a server says of itself, as far as the user may ask. */
export interface ServerTexts {
  /** INFO; undefined when the user may not. */
  readonly info: string | undefined;
  /** Only when asked for: CONFIG GET by name, and ACL LIST; undefined when the user may not. */
  readonly asOperator:
    | {
        readonly config: Readonly<Record<string, string>> | undefined;
        readonly acl: readonly string[] | undefined;
      }
    | undefined;
}

/** What the server is to us. */
export interface ServerUse {
  readonly host: string;
  /** For messages. */
  readonly server: string;
  readonly tls: boolean;
  readonly namespaces: readonly { readonly namespace: string; readonly nodeCount: number }[];
  /** The namespaces concerned by what is wrong with this server; undefined for all. */
  readonly concerns: readonly string[] | undefined;
}

/** What is read of CONFIG. */
export const CONFIG_NAMES = ["save", "appendfsync", "no-appendfsync-on-rewrite", "aof-load-truncated"] as const;

export interface Facts {
  readonly use: ServerUse;
  /** A line of INFO, fit to be told; undefined when it is not there. */
  readonly info: (name: string) => string | undefined;
  /** undefined when it was not asked for, or may not be. */
  readonly config: Readonly<Record<string, string>> | undefined;
  readonly texts: ServerTexts;
}

/** What we read of INFO is a word or two. */
const VALUE_LENGTH_MAX = 100;

export function factsOf(texts: ServerTexts, use: ServerUse): Facts {
  const info = (name: string) => {
    const value = new RegExp(`^${name}:([^\\r\\n]*)`, "m").exec(texts.info ?? "")?.[1];
    return value && escapeAndShorten(value, VALUE_LENGTH_MAX);
  };
  return { use, info, config: texts.asOperator?.config, texts };
}

/** Only a policy over all keys can take ours: those over keys with a time to live find none, as ours have none. */
export function evictingPolicy({ info }: Facts): string | undefined {
  const policy = info("maxmemory_policy");
  return policy?.startsWith("allkeys-") ? policy : undefined;
}

export function hasMemoryLimit({ info }: Facts): boolean {
  return Number(info("maxmemory") ?? 0) > 0;
}
