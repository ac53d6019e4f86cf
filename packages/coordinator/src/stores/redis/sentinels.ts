/**
 * Who the master is, as a Sentinel group says. All sentinels are asked at once, and the one with the greatest config epoch is
 * believed: each fail-over has a greater one, and only a majority can make it. A sentinel that was cut off, or has just come
 * back, still names the old master.
 */
import { CoordinatorError } from "../../errors.js";
import type { Endpoint, RedisLogin, SentinelPlace } from "./address.js";
import { askEach, endpointTold, type Told } from "./lookup.js";
import type { LookUp } from "./route.js";

/** @throws CoordinatorError `store_unavailable` when no sentinel names a master. */
export function sentinelLookUp(place: SentinelPlace, { tls, tlsFiles }: Pick<RedisLogin, "tls" | "tlsFiles">): LookUp {
  const { sentinels, masterName, sentinelUsername: username, sentinelPassword: password } = place;
  const login: RedisLogin = { tls, tlsFiles, username, password, database: 0 };
  return async () => {
    const { told, faults } = await askEach(sentinels, login, [
      // During a fail-over this names the new master already, while SENTINEL MASTER still shows the old one.
      ["SENTINEL", "get-master-addr-by-name", masterName],
      ["SENTINEL", "master", masterName],
    ]);
    const [best] = told.flatMap(masterIn).sort((one, other) => other.configEpoch - one.configEpoch);
    if (best !== undefined) return { endpoints: [best.master], endpointOf: () => best.master };
    throw new CoordinatorError(
      "store_unavailable",
      `no sentinel names the master "${masterName}": ${faults.join("; ")}`,
    );
  };
}

interface Naming {
  readonly master: Endpoint;
  readonly configEpoch: number;
}

function masterIn({ answers: [address, fields] }: Told): Naming[] {
  if (!Array.isArray(address) || !Array.isArray(fields)) return [];
  const master = endpointTold(address[0], address[1]);
  const configEpoch: unknown = fields[fields.indexOf("config-epoch") + 1];
  if (master === undefined || typeof configEpoch !== "string" || !/^\d{1,15}$/.test(configEpoch)) return [];
  return [{ master, configEpoch: Number(configEpoch) }];
}
