/** Where a server may listen that lets everybody in, or encrypts nothing: on this machine, unless whoever starts it says otherwise. Pure. */
import { isLoopback } from "../platform/loopback.js";
import { type Door, OPEN_DOOR } from "./access.js";
import type { HostNames } from "./host-names.js";

export interface Exposure {
  readonly door: Door;
  readonly isEncrypted: boolean;
  readonly listenWithoutTokens: boolean;
  readonly listenWithoutTls: boolean;
}

/** @throws TypeError where strangers would be let in, or could read what is said, and nobody asked for that by name. */
export function mustKeepToItself(
  host: string,
  { door, isEncrypted, listenWithoutTokens, listenWithoutTls }: Exposure,
): void {
  if (isLoopback(host)) return;
  if (door === OPEN_DOOR && !listenWithoutTokens) {
    throw new TypeError(
      `host "${host}" lets others in, and nobody is asked for a token: give a door, listen on 127.0.0.1, or say listenWithoutTokens: true`,
    );
  }
  if (!isEncrypted && !listenWithoutTls) {
    throw new TypeError(
      `host "${host}" lets others in, and nothing would be encrypted: give tls, listen on 127.0.0.1, or say listenWithoutTls: true`,
    );
  }
}

/** Whoever has to bear a token may name any host: a page under a foreign name has none. */
export function hostNamesFor({
  door,
  listenWithoutTokens,
}: Pick<Exposure, "door" | "listenWithoutTokens">): HostNames | undefined {
  if (door !== OPEN_DOOR) return undefined;
  return { addresses: listenWithoutTokens ? "any" : "loopback", names: new Set() };
}
