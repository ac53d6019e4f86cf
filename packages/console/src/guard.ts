/** Whether a namespace leases, by the newest word of it: a response, a request that failed, or an event. */
import type { GuardStatus } from "@callnumber/protocol/schemas";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { receivedAtMs, useEvents } from "./event-stream.js";
import { type Loadable, useNamespaces, useStatus } from "./use-response.js";

export type Guard = Pick<GuardStatus, "state" | "code" | "sinceMs" | "explanation">;

const STATES = ["active", "recovering", "stopped"] as const;

/** Of the namespace that the page shows. */
const Shown = createContext<Loadable<Guard> | undefined>(undefined);
export const ShownGuard = Shown.Provider;

export function useShownGuard(): Loadable<Guard> {
  return useContext(Shown) as Loadable<Guard>;
}

/** The list of namespaces knows the guard also where the record can't be read; the status does not, and then fails. */
export function useGuard(namespace: string): Loadable<Guard> {
  const list = useNamespaces(namespace);
  const status = useStatus(namespace);
  const described = list.data?.namespaces.find((one) => one.namespace === namespace);
  const isListed = described !== undefined && list.asOfMs >= status.asOfMs;
  const newest: Loadable<Guard> = isListed
    ? { ...list, data: described.guard }
    : { ...status, data: status.data?.guard ?? described?.guard };
  return { ...newest, ...useGuardOfEvent(namespace, newest) };
}

/** What the last change of state says, when the response may not know it yet. An event that is only sent again is older. */
function useGuardOfEvent(namespace: string, { data, asOfMs }: Loadable<Guard>): Partial<Loadable<Guard>> {
  const event = useEvents(namespace).find((one) => one.namespace === namespace && STATES.includes(one.event as never));
  const isNewer = event !== undefined && receivedAtMs(event) > asOfMs && event.atMs > (data?.sinceMs ?? 0);
  if (!isNewer) return {};
  const { explanation = "" } = event.fields as { explanation?: string };
  const state = event.event as Guard["state"];
  const code = event.code as Guard["code"];
  return { data: { state, code, sinceMs: event.atMs, explanation }, atMs: Date.now(), error: undefined };
}
