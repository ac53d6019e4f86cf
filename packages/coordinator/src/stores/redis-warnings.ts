/** What an operator should know of a Redis server, although leasing goes on: each with the line that ends it. Pure. */
import { isLoopback } from "../platform/loopback.js";
import type { Finding } from "../store.js";
import { type CONFIG_NAMES, evictingPolicy, type Facts, hasMemoryLimit } from "./redis-facts.js";

/** What is concerned is the server's unless the rule says otherwise. */
type Verdict = Omit<Finding, "namespaces"> & { readonly namespaces?: readonly string[] };
export type Rule = (facts: Facts) => Verdict | false | undefined;

export const WARNINGS: readonly Rule[] = [
  (facts) => {
    const policy = evictingPolicy(facts);
    return (
      policy !== undefined &&
      !hasMemoryLimit(facts) && {
        code: undefined,
        what: `as soon as its memory is limited it throws keys away (${policy}), and the counter may be among them`,
        remedy: "maxmemory-policy noeviction",
        override: "eviction-when-limited",
      }
    );
  },
  ({ info, config }) =>
    info("aof_enabled") === "0" && {
      code: undefined,
      what:
        config?.["save"] === ""
          ? "it keeps nothing on disk: after a restart it is empty, and somebody must recover it"
          : "it keeps no append-only file: after a crash it has forgotten all since the last snapshot, if there is one",
      remedy: "appendonly yes",
      override: "no-persistence",
    },
  ({ info }) =>
    (info("aof_last_write_status") === "err" || info("aof_last_bgrewrite_status") === "err") && {
      code: undefined,
      what: "it fails to write its append-only file",
      remedy: "make room on its disk, or mend it",
      override: "failing-writes",
    },
  ({ use }) =>
    !use.tls &&
    !isLoopback(use.host) && {
      code: undefined,
      what: "password and runs cross the network unencrypted",
      remedy: "--store with rediss in place of redis",
      override: "no-tls",
    },
];

/** What only an operator's user may ask. */
export const OPERATORS_WARNINGS: readonly Rule[] = [
  configIs("appendfsync", "no", {
    what: "when what it writes reaches the disk is left to chance",
    remedy: "appendfsync always",
    override: "appendfsync-no",
  }),
  configIs("no-appendfsync-on-rewrite", "yes", {
    what: "while it rewrites its append-only file nothing is synced to the disk",
    remedy: "no-appendfsync-on-rewrite no",
    override: "no-appendfsync-on-rewrite",
  }),
  configIs("aof-load-truncated", "yes", {
    what: "when its append-only file has lost its end it starts with what is left, and says nothing",
    remedy: "aof-load-truncated no",
    override: "aof-load-truncated",
  }),
  ({ texts: { asOperator } }) => {
    const user = asOperator?.acl?.find((line) => /^user default on\b/.test(line));
    return (
      user !== undefined && {
        code: undefined,
        what: `whoever reaches it is let in as the default user${/\bnopass\b/.test(user) ? ", without a password" : ""}`,
        remedy: "user default off",
        override: "default-user",
      }
    );
  },
  ({ texts: { asOperator } }) => {
    const refused = [
      ...(asOperator !== undefined && asOperator.config === undefined ? ["CONFIG GET"] : []),
      ...(asOperator !== undefined && asOperator.acl === undefined ? ["ACL LIST"] : []),
    ];
    return (
      refused.length > 0 && {
        code: undefined,
        what: `this user may not say ${refused.join(" and ")}: what they tell was not looked at`,
        remedy: "--store with the operator's user",
        override: "unseen-configuration",
      }
    );
  },
];

function configIs(name: (typeof CONFIG_NAMES)[number], value: string, told: Omit<Verdict, "code">): Rule {
  // Without the file its settings say nothing.
  return ({ config, info }) => config?.[name] === value && info("aof_enabled") !== "0" && { code: undefined, ...told };
}
