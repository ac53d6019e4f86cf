/** Who was refused, for the log: what an operator needs to find them. Never a token; what they said of themselves is made fit to be shown. */
import { HOLDER_NAME_LENGTH_MAX, HOST_LENGTH_MAX } from "@callnumber/protocol/wire";
import type { FastifyRequest } from "fastify";
import type { RefusedCaller } from "../events/events.js";
import { escapeAndShorten, withoutTokens } from "../text.js";

interface NamedCaller extends RefusedCaller {
  /** As the body names it; undefined where it was not read, or names none. */
  readonly holder?: { readonly name: string; readonly host: string | undefined } | undefined;
}

export function refusedCaller({ caller, ip, body }: FastifyRequest): NamedCaller {
  // Before it is known who asks, and where nobody was asked for a token, there is none.
  const tokenId = (caller as typeof caller | null)?.tokenId ?? undefined;
  return { tokenId, remoteAddress: ip, holder: holderIn(body) };
}

/** Of any body: it may be the one that was refused for what it holds. */
function holderIn(body: unknown): NamedCaller["holder"] {
  const { name, host } = at(at(body)["holder"]);
  if (typeof name !== "string") return undefined;
  return {
    name: toldName(name, HOLDER_NAME_LENGTH_MAX),
    host: typeof host === "string" ? toldName(host, HOST_LENGTH_MAX) : undefined,
  };
}

function at(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function toldName(text: string, lengthMax: number): string {
  return escapeAndShorten(withoutTokens(text).slice(0, lengthMax));
}
