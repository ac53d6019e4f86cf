/**
 * What an operator should know of the way to a master that Sentinels name. Pure. Who answers in the place of one says where the password of the
 * data servers is sent; a Sentinel's own password does not prevent that, as it proves us to the Sentinel and not the Sentinel to us.
 */
import { isLoopback } from "../platform/loopback.js";
import type { Finding } from "../store.js";
import type { RedisLogin, SentinelPlace } from "./redis-address.js";

type Way = Pick<SentinelPlace, "sentinels" | "sentinelPassword"> & Pick<RedisLogin, "tls" | "tlsFiles">;

export function sentinelFindings({ sentinels, sentinelPassword, tls, tlsFiles }: Way): readonly Finding[] {
  // What is on this machine alone, nobody else answers for.
  if (sentinels.every(({ host }) => isLoopback(host))) return [];
  return [
    ...(tls ? [] : [NO_TLS]),
    // A certificate that they ask of everybody keeps strangers out as well.
    ...(sentinelPassword === undefined && tlsFiles?.certificate === undefined ? [NO_PASSWORD] : []),
  ];
}

const WARNING = { code: undefined, namespaces: undefined } as const;

const NO_TLS: Finding = {
  ...WARNING,
  what:
    "the Sentinels are asked without TLS: whoever answers in the place of one, or changes its answer on the way, names the server that is given " +
    "the user's password",
  remedy: "--store with rediss-sentinel in place of redis-sentinel, and ?ca= with an authority of your own",
  override: "sentinel-no-tls",
};

const NO_PASSWORD: Finding = {
  ...WARNING,
  what:
    "the Sentinels ask for no password: whoever reaches the port of one can have it name another server as the master, " +
    "which is then given the user's password",
  remedy: "requirepass for each Sentinel, and --store with ?sentinelPassword=",
  override: "sentinel-no-password",
};
